"""A witness detects a missing proof only if it finds no fault in the complete library."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.proofs.mutants import witnesses
from tests.support.variants import explorer_without


@pytest.mark.check
def test_the_explorer_with_all_proofs_finds_no_forbidden_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words, proof = ["streams", "1", "1", "0"], "new_stream_is_held"
    with explorer_without(proof) as mutant:
        faulty = shutil.copy(mutant, tmp_path)
    witnesses.explore(words, proof)
    monkeypatch.setattr(witnesses, "explorer", lambda: faulty)
    with pytest.raises(AssertionError, match="first operations"):
        witnesses.explore(words, proof)
