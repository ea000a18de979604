# Which proofs the selftest notices the lack of: `make check` sees only that those are noticed which
# docs/proofs.md says. Writes that table. PROOFS="name ..." for some.

.PHONY: check-selftest
check-selftest: all needs-tools
	$(BIN)/python -m tests.python.selftest.share $(PROOFS)
