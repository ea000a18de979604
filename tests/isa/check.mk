# The whole proof of the interpreter; `make test` runs a sample of it.
#
# Tests marked check_isa take minutes each. This target runs them and all else of their directories.

.PHONY: check-isa
check-isa: all needs-tools needs-test $(STOCK_LIBRARIES)
	$(BIN)/python -m pytest -q -m 'not gpu' tests/isa tests/kernels
