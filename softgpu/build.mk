# The software GPU, in the place of AMD's driver library under Debian's unmodified HIP runtimes:
# build/softgpu/libhsakmt.so.1 for HIP 5, libdtif.so beside it for HIP 6 and 7 over ROCr 7. Both are
# the same objects. Needs libhsakmt-dev (headers only).
#
# Included by the top Makefile; also works by itself: make -f softgpu/build.mk

.DEFAULT_GOAL := $(or $(.DEFAULT_GOAL),softgpu)

# AMD's driver library: where its header lies, unless CFLAGS say so. The same in csrc/packaging/need.sh.
HSAKMT := $(patsubst %/hsakmt.h,-idirafter %,$(wildcard /usr/include/hsakmt/hsakmt.h \
	/opt/rocm/include/hsakmt.h /opt/rocm/include/hsakmt/hsakmt.h))

SOFTGPU_LIBRARY := build/softgpu/libhsakmt.so.1
SOFTGPU_SOURCES := $(wildcard softgpu/src/*.c softgpu/src/isa/*.c)
SOFTGPU_OBJECTS := $(SOFTGPU_SOURCES:softgpu/src/%.c=build/softgpu/obj/%.o)
SOFTGPU_MAP := softgpu/src/export.map
SOFTGPU_DTIF := build/softgpu/libdtif.so
SOFTGPU_DTIF_MAP := softgpu/src/dtif.map
# Traps and errno would keep the compiler from turning the interpreter's loops over lanes into
# vectors; the tests of the instructions are built alike.
SOFTGPU_CFLAGS := $(HSAKMT) -std=c11 -D_GNU_SOURCE -O2 -ftree-vectorize -fno-trapping-math -fno-math-errno \
	-fPIC -pthread -fvisibility=hidden -Wall -Wextra -Wpedantic

# Beside the device: HIP's compiler, which is AMD's, with a memory (src/comgr/comgr.h).
COMGR_LIBRARY := build/softgpu/libamd_comgr.so.2
COMGR_SOURCES := $(wildcard softgpu/src/comgr/*.c)
COMGR_OBJECTS := $(COMGR_SOURCES:softgpu/src/%.c=build/softgpu/obj/%.o) build/softgpu/obj/settings.o
COMGR_MAP := softgpu/src/comgr/export.map

# The checker, `mgpu-rt check`: the sources that have hooks, compiled with them, its own, and the
# device's objects for the rest, which take the longest to compile.
SOFTGPU_HOOKED := $(shell grep -l CHECK $(SOFTGPU_SOURCES))
SOFTGPU_CHECK_OBJECTS := $(patsubst softgpu/src/%.c,build/softgpu/check/obj/%.o,\
	$(SOFTGPU_HOOKED) $(filter-out %/no_device.c %/host_blocks.c,$(wildcard softgpu/src/check/*.c))) \
	$(patsubst softgpu/src/%.c,build/softgpu/obj/%.o,$(filter-out $(SOFTGPU_HOOKED),$(SOFTGPU_SOURCES)))
SOFTGPU_CHECK_LIBRARY := build/softgpu/check/libhsakmt.so.1
# Its calls alone, for programs on a GPU.
CALLS_CHECK_OBJECTS := $(patsubst %,build/softgpu/check/obj/check/%.o,\
	calls early_use foreign host_writes intercept no_device order past place report streams)
CALLS_CHECK_LIBRARY := build/softgpu/check/libmgpu_rt_check.so
# The blocks of the host's malloc: preloaded on every device.
HOST_CHECK_OBJECTS := build/softgpu/check/obj/check/host_blocks.o
HOST_CHECK_LIBRARY := build/softgpu/check/libmgpu_rt_check_host.so

.PHONY: softgpu
softgpu: $(SOFTGPU_LIBRARY) $(SOFTGPU_DTIF) $(COMGR_LIBRARY) $(SOFTGPU_CHECK_LIBRARY) \
	$(CALLS_CHECK_LIBRARY) $(HOST_CHECK_LIBRARY)

$(SOFTGPU_LIBRARY): $(SOFTGPU_OBJECTS) $(SOFTGPU_MAP)
	$(CC) -shared -pthread $(LDFLAGS) -o $@ $(SOFTGPU_OBJECTS) -lm \
		-Wl,-soname,libhsakmt.so.1 -Wl,--version-script=$(SOFTGPU_MAP) -Wl,-z,defs

$(SOFTGPU_DTIF): $(SOFTGPU_OBJECTS) $(SOFTGPU_DTIF_MAP)
	$(CC) -shared -pthread $(LDFLAGS) -o $@ $(SOFTGPU_OBJECTS) -lm \
		-Wl,-z,nodelete -Wl,-soname,libdtif.so -Wl,--version-script=$(SOFTGPU_DTIF_MAP) -Wl,-z,defs

# Never unloaded: AMD's library behind it is not either.
$(COMGR_LIBRARY): $(COMGR_OBJECTS) $(COMGR_MAP)
	$(CC) -shared -pthread $(LDFLAGS) -o $@ $(COMGR_OBJECTS) -ldl \
		-Wl,-z,nodelete -Wl,-soname,libamd_comgr.so.2 -Wl,--version-script=$(COMGR_MAP) -Wl,-z,defs

$(SOFTGPU_CHECK_LIBRARY): $(SOFTGPU_CHECK_OBJECTS) $(SOFTGPU_MAP)
	$(CC) -shared -pthread $(LDFLAGS) -o $@ $(SOFTGPU_CHECK_OBJECTS) -lm -ldl \
		-Wl,-soname,libhsakmt.so.1 -Wl,--version-script=$(SOFTGPU_MAP) -Wl,-z,defs

$(CALLS_CHECK_LIBRARY): $(CALLS_CHECK_OBJECTS)
	$(CC) -shared -pthread $(LDFLAGS) -o $@ $(CALLS_CHECK_OBJECTS) -ldl -Wl,-z,nodelete -Wl,-z,defs

$(HOST_CHECK_LIBRARY): $(HOST_CHECK_OBJECTS)
	$(CC) -shared -pthread $(LDFLAGS) -o $@ $(HOST_CHECK_OBJECTS) -ldl -Wl,-z,nodelete -Wl,-z,defs

build/softgpu/check/obj/%.o: softgpu/src/%.c
	@mkdir -p $(@D)
	$(CC) $(SOFTGPU_CFLAGS) -DSOFTGPU_CHECK $(CFLAGS) -MMD -MP -c -o $@ $<

build/softgpu/obj/%.o: softgpu/src/%.c
	@mkdir -p $(@D)
	$(CC) $(SOFTGPU_CFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

-include $(SOFTGPU_OBJECTS:.o=.d) $(SOFTGPU_CHECK_OBJECTS:.o=.d) \
	$(CALLS_CHECK_OBJECTS:.o=.d) $(HOST_CHECK_OBJECTS:.o=.d) \
	$(COMGR_OBJECTS:.o=.d)
