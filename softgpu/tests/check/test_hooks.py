"""The ordinary device consists of the sources without the checker's calls."""

from __future__ import annotations

from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src"


def test_only_hooked_sources_are_compiled_for_the_checker() -> None:
    """build.mk takes each source without the word CHECK from the ordinary build."""
    headers = [path for path in SOURCE.rglob("*.h") if path.parent.name != "check"]
    assert not [path for path in headers if "CHECK" in path.read_text()]
