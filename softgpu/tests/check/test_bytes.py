"""Checks that the preprocessed sources of the ordinary device contain no trace of the checker."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.patience import run_process

SOURCE = Path(__file__).resolve().parents[2] / "src"

#: Maps a call of each hook macro to the macro's expansion in the ordinary build.
REST = {
    "CHECKED_LANES(w, i, va, mask)": "(mask)",
    "CHECKED_ACCESS(w, i, lane, va, bytes)": "true",
    "CHECK_SKIPS_LANE(mask, w, i, lane, what, va, bytes)": "",
    "CHECK_STOPPED(text)": "",
    "CHECK_REGISTERED(va, size)": "",
    "CHECK_UNREGISTERED(va)": "",
    "CHECK_UNMAP(pages, size)": "munmap(pages, size)",
    "CHECK_GUARD(size)": "0ul",
    "CHECK_LDS(w, i, offset, mask, bytes)": "",
    "CHECK_LAUNCH(d)": "",
    "CHECK_QUEUE(queue, begins)": "",
    "CHECK_GROUP_BEGIN(g, number)": "",
    "CHECK_GROUP_END(g)": "",
    "CHECK_GROUP_FREE(g)": "",
    "CHECK_WAVE_BEGIN(w)": "",
    "CHECK_WAVE_FREE(w)": "",
    "CHECKED_RUN(w, i)": "(i)->run(w, i)",
    "CHECK_TRANSFER(w, i, a)": "",
    "CHECK_TWO(w, i, a, mask, dwords)": "",
    "CHECK_TO_LDS(w, i, lane, to)": "",
    "CHECK_COLLECT(w, base, offset, lane, count)": "",
    "CHECK_DISTRIBUTE(w, base, offset, lane, count)": "",
    "CHECK_COPIED(to, from, bytes)": "",
    "CHECK_FILLED(to, bytes)": "",
    "CHECK_BARRIER(g)": "",
    "CHECK_GRID_BARRIER(w)": "",
    "CHECKED_CACHE(nothing)": "nothing",
}
PLAIN = ["-DSOFTGPU_CHECK_HOOKS_H", *(f"-D{name}={rest}" for name, rest in REST.items())]


def preprocessed(source: Path, *options: str) -> str:
    """Returns the preprocessed source, without blanks and without integer suffixes (u, l)."""
    words = ["cc", "-E", "-P", "-std=c11", "-D_GNU_SOURCE", *options, source]
    headers = ["-idirafter", "/usr/include/hsakmt", "-idirafter", "/opt/rocm/include"]
    done = run_process([*words, *headers], check=True)
    return re.sub(r"\s+|(?<=\d)[uUlL]+", "", done.stdout)


@pytest.mark.check
def test_hooks_cost_no_byte() -> None:
    hooked = [path for path in SOURCE.rglob("*.c") if '/hooks.h"' in path.read_text()]
    assert len(hooked) >= 6
    for path in hooked:
        assert preprocessed(path) == preprocessed(path, *PLAIN), path


def test_only_hooked_sources_are_compiled_for_the_checker() -> None:
    """build.mk takes each source without the word CHECK from the ordinary build."""
    headers = [path for path in SOURCE.rglob("*.h") if path.parent.name != "check"]
    assert not [path for path in headers if "CHECK" in path.read_text()]
