# What gcc and clang want differently. Included by the makefiles of this folder.

CLANG := $(findstring clang,$(shell $(CC) --version 2>/dev/null))
LTO ?= $(if $(CLANG),-flto,-flto -flto-partition=one)
# C11 forbids static functions only in inline definitions, which a plain declaration rules out; clang 22
# warns all the same.
PORTABLE := $(if $(CLANG),-include csrc/clang.h -Wno-static-in-inline)
