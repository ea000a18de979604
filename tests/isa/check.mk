# The whole proof of the interpreter; `make test` runs a sample of it.
#
# Tests marked check_isa take minutes each. This target runs them and the others of tests/isa and tests/kernels.

.PHONY: check-isa
check-isa: all packages-tools packages-test
	$(BIN)/python -m pytest -q -m 'not gpu' tests/isa tests/kernels
