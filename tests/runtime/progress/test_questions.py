"""Tests which questions to HIP wait for kernels, and that no source file asks such a question."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.runtime.progress import questions
from tests.support.child import BACKENDS, ROOT, environment
from tests.support.patience import run_process

PAGE = ROOT / "docs" / "questions.md"
SOURCES = ROOT / "csrc" / "runtime"


@pytest.mark.parametrize("backend", BACKENDS)
def test_one_question_delays_the_work_of_others(backend: str, tmp_path: Path) -> None:
    """The stub answers as AMD's HIP does: the calls run beside a kernel that waits for the host."""
    env = environment(backend, HIPSTUB_ASYNC="0")
    command = [str(word) for word in questions.words(tmp_path, Path(env["MGPU_RT_HIP"]))]
    done = run_process(command, env)
    assert questions.delaying(done.stdout) == questions.DELAYING, done.stderr


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
