# Which proofs the selftest notices the lack of: `make check` tries one proof for each check of the
# selftest, this target all that tests/proofs/proofs.md names. Writes that table. PROOFS="name ..." for some,
# PROOFS=--all also for those whose row says why no check notices.

.PHONY: check-selftest
check-selftest: all needs-tools
	$(BIN)/python -m tests.python.selftest.share $(PROOFS)
