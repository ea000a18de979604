# The interpreter of GPU code by itself, for its tests: without HIP, from the driver library's objects.
#
# Included by tests/build.mk, after softgpu/build.mk.

isa_objects := $(filter build/softgpu/obj/execute.o build/softgpu/obj/disassemble.o \
    build/softgpu/obj/isa/%,$(SOFTGPU_OBJECTS))
isa_flags := $(SOFTGPU_CFLAGS) $(CFLAGS) $(LDFLAGS)

ISA_TOOLS := build/softgpu/libisa.so build/softgpu/isa-decode

build/softgpu/libisa.so: softgpu/tests/isa/driver.c $(isa_objects)
	$(CC) $(isa_flags) -shared -o $@ $^ -lm

build/softgpu/isa-decode: softgpu/tests/isa/decode_main.c softgpu/tests/isa/driver.c $(isa_objects)
	$(CC) $(isa_flags) -o $@ $^ -lm
