# Tools for the tests of the interpreter: it alone, without HIP and without the driver library.
#
# Included by the top Makefile; also works by itself: make -f csrc/softgpu/isa/build.mk isa-tools

ISA_SOURCES := csrc/softgpu/execute.c csrc/softgpu/disassemble.c $(wildcard csrc/softgpu/isa/*.c)
ISA_OBJECTS := $(ISA_SOURCES:csrc/softgpu/%.c=build/softgpu/isa-obj/%.o)
# Vector loops over lanes: traps and errno would keep the compiler from them.
ISA_CFLAGS := -std=c11 -D_GNU_SOURCE -O2 -ftree-vectorize -fno-trapping-math -fno-math-errno -g \
	-fPIC -pthread -fvisibility=hidden -Wall -Wextra -Wpedantic

.PHONY: isa-tools
isa-tools: build/softgpu/libisa.so build/softgpu/isa-decode

build/softgpu/libisa.so: $(ISA_OBJECTS) tests/softgpu/isa/driver.c
	$(CC) $(ISA_CFLAGS) $(CFLAGS) -shared $(LDFLAGS) -o $@ tests/softgpu/isa/driver.c $(ISA_OBJECTS) -lm

build/softgpu/isa-decode: $(ISA_OBJECTS) tests/softgpu/isa/decode_main.c tests/softgpu/isa/driver.c
	$(CC) $(ISA_CFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ tests/softgpu/isa/decode_main.c tests/softgpu/isa/driver.c \
		$(ISA_OBJECTS) -lm

build/softgpu/isa-obj/%.o: csrc/softgpu/%.c
	@mkdir -p $(@D)
	$(CC) $(ISA_CFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

-include $(ISA_OBJECTS:.o=.d)
