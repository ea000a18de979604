# What the tests are run with, beside what `make` builds: stand-ins for HIP and for NVIDIA's driver,
# stock's runtime, the player of random programs, the interpreter of GPU code by itself.
#
# Included by the top Makefile. pytest makes it by itself, so that tests run at once after `make`
# (conftest.py):
#     make -f tests/build.mk test-libraries

.DEFAULT_GOAL := $(or $(.DEFAULT_GOAL),test-libraries)

include tests/hipstub/build.mk
include tests/custub/build.mk
include tests/sparsestub/build.mk
include bench/stock/build.mk
include tests/random_driver/build.mk
ifndef SOFTGPU_LIBRARY
include softgpu/build.mk
endif
include softgpu/tests/isa/build.mk

TEST_LIBRARIES := $(HIPSTUB_LIBRARIES) $(CUSTUB_LIBRARY) $(STOCK_LIBRARIES) $(RANDOM_DRIVER) \
    $(ISA_TOOLS)

.PHONY: test-libraries
test-libraries: $(TEST_LIBRARIES)
