"""Tests streams that threads pass to each other: the library never hands out a stream to two
threads at once, or with pending work."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.child import BUILD, ROOT, environment, library
from tests.support.compiled import compile_c
from tests.support.folders import folder
from tests.support.patience import HANG
from tests.support.suites import in_check

STUB = BUILD / "hipstub" / "libamdhip64.so.5"


@pytest.fixture(scope="module")
def program() -> Path:
    out = folder("streams") / "streams"
    source = (ROOT / "tests" / "support" / "hosts" / "streams.c").read_text()
    return compile_c(out, source, "-D_GNU_SOURCE", "-O1", "-pthread", "-ldl")


@pytest.mark.parametrize("seed", in_check(range(4), bool))
@pytest.mark.parametrize("threads", ["2", "5"])
def test_random_use_of_streams_by_threads_goes_well(program: Path, threads: str, seed: int) -> None:
    """Threads create, use, pass on, synchronise and destroy streams at random."""
    tight = {"MGPU_RT_STREAM_LIMIT": "1"} if seed % 2 else {}
    env = environment(
        HIPSTUB_ASYNC="20,0,100,5",  # microseconds of each operation, by stream
        MGPU_RT_EXCLUSIVE="on",  # otherwise HIP would be asked about every stream
        MGPU_RT_MANAGER="off",
        **tight,
    )
    done = subprocess.run(
        [str(program), str(library()), str(STUB), str(seed), threads, "2000"],
        env=env,
        capture_output=True,
        text=True,
        timeout=HANG,
    )
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr
    assert done.stderr == ""
