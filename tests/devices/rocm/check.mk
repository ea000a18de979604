# AMD's releases beyond Debian 12's, on the emulated device: the matrix of docs/record/tested.md.
#
# Fetches each release's packages once (60 MB each) into build/rocm, without root.

.PHONY: check-rocm
check-rocm: all needs-tools needs-test $(HIPSTUB_LIBRARIES) $(STOCK_LIBRARIES)
	$(BIN)/python -m tests.devices.rocm
