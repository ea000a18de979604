# What the tests are run with, beside what `make` builds: stand-ins for HIP and for NVIDIA's driver,
# stock's runtime, the player of random programs.
#
# Included by the top Makefile. pytest makes it by itself, so that tests run at once after `make`:
#     make -f tests/build.mk test-libraries

.DEFAULT_GOAL := $(or $(.DEFAULT_GOAL),test-libraries)

include tests/devices/hipstub/build.mk
include tests/devices/custub/build.mk
include tests/devices/sparsestub/build.mk
include bench/stock/build.mk
include tests/proofs/random/build.mk

TEST_LIBRARIES := $(HIPSTUB_LIBRARIES) $(CUSTUB_LIBRARY) $(STOCK_LIBRARIES) $(RANDOM_DRIVER)

.PHONY: test-libraries
test-libraries: $(TEST_LIBRARIES)
