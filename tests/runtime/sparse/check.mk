# Sparse matrices by AMD's own hipSPARSE on the emulated device, against SciPy: docs/sparse.md.
#
# Apart from make test, as rocSPARSE, which serves hipSPARSE, is 94 MB to download and 1.3 GB unpacked.

NEEDS_sparse := hipsparse

.PHONY: check-sparse
check-sparse: all needs-tools needs-sparse $(SPARSESTUB_LIBRARIES)
	$(INSTALL_HERE) -e '.[test,sparse]'
	$(BIN)/python -m tests.runtime.sparse
