# The stand-in for hipSPARSE and cuSPARSE, for tests. From the repository's root:
#     make -f tests/devices/sparsestub/build.mk
# or included by another makefile, whose HIPSTUB_LIBRARIES then hold it too.

sparsestub_dir := build/sparsestub
SPARSESTUB_LIBRARIES := $(addprefix $(sparsestub_dir)/,libhipsparse.so.0 libhipsparse.so.1 \
    libcusparse.so.12)
HIPSTUB_LIBRARIES += $(SPARSESTUB_LIBRARIES)

.DEFAULT_GOAL := $(or $(.DEFAULT_GOAL),sparsestub)
.PHONY: sparsestub
sparsestub: $(SPARSESTUB_LIBRARIES)

sparsestub_flags_libhipsparse.so.0 := -DPREFIX=hipsparse -DVERSION=200302 -DNO_BSR -DNO_ERROR_STRING
sparsestub_flags_libhipsparse.so.1 := -DPREFIX=hipsparse -DVERSION=300102
sparsestub_flags_libcusparse.so.12 := -DPREFIX=cusparse -DVERSION=12510

$(sparsestub_dir)/%: tests/devices/sparsestub/sparsestub.c csrc/sparse/sparse.def
	@mkdir -p $(@D)
	$(CC) -std=c11 -D_GNU_SOURCE -O1 -g -fPIC -pthread -shared -Wall -Wextra -Wpedantic -Icsrc \
	    -Wno-unused-parameter $(sparsestub_flags_$*) -Wl,-soname,$* $< -o $@
