"""The page about questions to HIP names each function, and no source file asks AMD's HIP about the
null stream. Such a question would delay the kernels of all streams."""

from __future__ import annotations

import re

from tests.support.child import ROOT

PAGE = ROOT / "docs" / "questions.md"
SOURCES = ROOT / "csrc" / "runtime"


def _functions() -> set[str]:
    text = (SOURCES / "driver" / "hip.def").read_text(encoding="utf-8")
    return {f"hip{name}" for name in re.findall(r"^HIP_FN\(\w+, (\w+),", text, re.MULTILINE)}


def test_the_page_names_each_function_of_hip() -> None:
    named = set(re.findall(r"`(hip\w+)`", PAGE.read_text(encoding="utf-8")))
    assert _functions() - named == set()


def test_only_nvidias_driver_is_asked_about_the_null_stream() -> None:
    asking = [
        f"{path.name}: {line.strip()}"
        for path in sorted(SOURCES.rglob("*.c"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(r"StreamQuery\((NULL|0)\)", line)
    ]
    assert len(asking) == 1
    assert asking[0].startswith("mgpu_copy.c")
