# What gcc and clang want differently. Included by the makefiles of this folder.

CLANG := $(findstring clang,$(shell $(CC) --version 2>/dev/null))
LTO ?= $(if $(CLANG),-flto,-flto -flto-partition=one)
PORTABLE := $(if $(CLANG),-include csrc/clang.h)
