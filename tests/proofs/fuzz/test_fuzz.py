"""The fuzzers' README.md explains every reader. `make fuzz` runs the fuzzers."""

from __future__ import annotations

import re

from tests.proofs.fuzz import __main__ as fuzz
from tests.proofs.fuzz import seeds


def test_each_reader_is_built_and_explained() -> None:
    recipe = (fuzz.HERE / "fuzz.mk").read_text(encoding="utf-8")
    page = fuzz.README.read_text(encoding="utf-8")
    readers = re.search(r"^FUZZ_READERS := (.*)$", recipe, re.MULTILINE)
    assert readers and set(readers[1].split()) == set(seeds.SEEDS)
    for reader in seeds.SEEDS:
        assert (fuzz.HERE / f"{reader}.c").exists()
        assert page.count(f"\n| {reader} | ") == 1
