# What the tests are run with, beside the device: the interpreter of GPU code by itself, without HIP,
# from the driver library's objects.
#
# Included by the top Makefile. pytest makes it by itself: make -f softgpu/tests/build.mk isa-tools

.DEFAULT_GOAL := $(or $(.DEFAULT_GOAL),isa-tools)

ifndef SOFTGPU_LIBRARY
include softgpu/build.mk
endif

isa_objects := $(filter build/softgpu/obj/execute.o build/softgpu/obj/disassemble.o \
    build/softgpu/obj/settings.o build/softgpu/obj/isa/%,$(SOFTGPU_OBJECTS))
isa_flags := $(SOFTGPU_CFLAGS) $(CFLAGS) $(LDFLAGS)

ISA_TOOLS := build/softgpu/libisa.so build/softgpu/isa-decode

.PHONY: isa-tools
isa-tools: $(ISA_TOOLS)

build/softgpu/libisa.so: softgpu/tests/isa/driver.c $(isa_objects)
	$(CC) $(isa_flags) -shared -o $@ $^ -lm

build/softgpu/isa-decode: softgpu/tests/isa/decode_main.c softgpu/tests/isa/driver.c $(isa_objects)
	$(CC) $(isa_flags) -o $@ $^ -lm
