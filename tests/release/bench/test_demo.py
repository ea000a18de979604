"""The demonstration ends with status 1 if it cannot show a comparison."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import demo


def test_a_missing_library_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "OURS", tmp_path / "missing.so")
    assert demo.main() == 1
    assert "demo: " in (said := capfd.readouterr().err) and "missing.so" in said


def test_a_failed_comparison_fails_the_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "compare", lambda llvm: -11 if llvm == 19 else 0)
    assert demo.main() == 1
