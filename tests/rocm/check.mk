# AMD's releases beyond Debian 12's, on the emulated device: the matrix of docs/tested.md.
#
# Fetches each release's packages once (60 MB each) into build/rocm, without root.

.PHONY: check-rocm
check-rocm: all needs-tools needs-test $(HIPSTUB_LIBRARIES) $(STOCK_LIBRARIES)
	$(BIN)/python -m tests.rocm

# AMD's own tests of ROCr and rocRAND, and random C programs: each is run, whatever the others did.
NEEDS_csmith := clang-22

.PHONY: check-amd
check-amd: all needs-tools needs-csmith
	failed=; for suite in rocrtst rocrand csmith; do \
		$(BIN)/python -m tests.rocm.$$suite || failed="$$failed $$suite"; done; \
	test -z "$$failed" || { echo "Not as expected:$$failed" >&2; exit 1; }
	$(BIN)/python -m tests.rocm --docs
