# The whole proof of the emulated device; `make test` runs a sample of it.
#
# Tests marked check_isa take minutes each. This target runs them and all else of their directories.

.PHONY: check-isa
check-isa: all needs-tools needs-test $(STOCK_LIBRARIES)
	$(BIN)/python -m pytest -q -m 'not gpu' softgpu/tests/isa softgpu/tests/kernels

# AMD's own tests of ROCr and rocRAND, and random C programs: each is run, whatever the others did.
NEEDS_csmith := clang-22

.PHONY: check-amd
check-amd: all needs-tools needs-csmith
	failed=; for suite in amd.rocrtst amd.rocrand csmith; do \
		$(BIN)/python -m softgpu.tests.$$suite || failed="$$failed $$suite"; done; \
	test -z "$$failed" || { echo "Not as expected:$$failed" >&2; exit 1; }
	$(BIN)/python -m tests.rocm --docs
