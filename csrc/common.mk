# What gcc and clang want differently. Included by the makefiles of this folder.

CLANG := $(findstring clang,$(shell $(CC) --version 2>/dev/null))
LTO ?= $(if $(CLANG),-flto,-flto=auto)
PORTABLE := $(if $(CLANG),-include csrc/clang.h)

# AMD's driver library: where its header lies, unless CFLAGS say so. The same in csrc/packaging/need.sh.
HSAKMT := $(patsubst %/hsakmt.h,-idirafter %,$(wildcard /usr/include/hsakmt/hsakmt.h \
	/opt/rocm/include/hsakmt.h /opt/rocm/include/hsakmt/hsakmt.h))
