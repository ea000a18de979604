# The runtime: build/lib/libmlir_rocm_runtime.so, beside it links with the names that programs of
# each LLVM ask for, and mgpu-rt-probe, which `mgpu-rt doctor` runs. Needs a C compiler only.
#
# Included by the top Makefile; also works by itself: make -f csrc/runtime/build.mk

include csrc/common.mk

LIBRARY := build/lib/libmlir_rocm_runtime.so
PROBE := build/lib/mgpu-rt-probe
MGPU_RT_VERSION := $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' mgpu_rt/__init__.py)

# What LLVM's own libraries are called: their SONAMEs since LLVM 12, and the plain name of the one
# for CUDA, whose calls this library serves too.
LLVM_VERSIONS := 12 13 14 15 16 17 18.1 19.1 20.1 21.1 22.1 23.1 24.0
OTHER_NAMES := libmlir_cuda_runtime.so $(foreach version,$(LLVM_VERSIONS),\
	libmlir_rocm_runtime.so.$(version) libmlir_cuda_runtime.so.$(version))
LINKS := $(OTHER_NAMES:%=build/lib/%)

RUNTIME_SOURCES := $(wildcard csrc/runtime/*/*.c csrc/runtime/*/*/*.c)
RUNTIME_OBJECTS := $(RUNTIME_SOURCES:csrc/runtime/%.c=build/runtime/%.o)

# Across files: the exported functions take in the implementations, and these the tables' lookups.
# It spares a fifth of the fast path's instructions.
RUNTIME_CFLAGS := -std=c11 -D_GNU_SOURCE -O3 $(LTO) $(PORTABLE) -fPIC -pthread -fvisibility=hidden \
	-Wall -Wextra -Wpedantic -Icsrc/include -Icsrc/runtime \
	-DMGPU_RT_VERSION='"$(MGPU_RT_VERSION)"'

.DEFAULT_GOAL := $(or $(.DEFAULT_GOAL),$(LIBRARY))

include csrc/sparse/build.mk
include csrc/python/build.mk

# A program that closes the library leaves exit handlers and threads' blocks behind, so it stays.
$(LIBRARY): $(RUNTIME_OBJECTS) build/runtime/exports.map | $(SPARSE_LIBRARY) $(PYTHON_LIBRARY)
	@mkdir -p $(@D)
	$(CC) -shared $(RUNTIME_CFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $(RUNTIME_OBJECTS) -ldl \
		-Wl,-soname,$(@F) -Wl,--version-script=build/runtime/exports.map -Wl,-z,nodelete \
		-Wl,-z,relro -Wl,-z,now -Wl,-z,defs -Wl,--as-needed

build/runtime/%.o: csrc/runtime/%.c mgpu_rt/__init__.py
	@mkdir -p $(@D)
	$(CC) $(RUNTIME_CFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

build/runtime/exports.map: csrc/runtime/exports.map.in csrc/abi.def
	@mkdir -p $(@D)
	$(CC) -E -P -x c $< -o $@

# The folder itself is a prerequisite of nothing: a link is as new as what it leads to.
$(LINKS): $(LIBRARY)
	ln -sf $(<F) $@

# With the readers of images and the watch of pages, which the library does not export.
PROBE_SOURCES := csrc/probe.c csrc/runtime/memory/page_watch.c \
	csrc/runtime/process/lines.c $(wildcard csrc/runtime/modules/image/*.c)

$(PROBE): $(PROBE_SOURCES) $(LIBRARY)
	$(CC) -std=c11 -D_GNU_SOURCE -O1 $(PORTABLE) -Wall -Wextra -Wpedantic -Icsrc/include \
		-Icsrc/runtime $(CFLAGS) -UWITHOUT $(LDFLAGS) -o $@ $(PROBE_SOURCES) $(LIBRARY) -pthread \
		-Wl,-rpath,'$$ORIGIN'

-include $(RUNTIME_OBJECTS:.o=.d)
