"""A memory fault on NVIDIA's GPU, whose driver gives no address: the end of a recorded run names
the last launches and their blocks."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.devices.gpu import CHIP
from tests.python.cli.test_fault import FAR
from tests.support import lower
from tests.support.child import ROOT, environment, library
from tests.support.patience import HANG

pytestmark = pytest.mark.gpu

RAN = re.compile(
    r"""mgpu-rt: a kernel accessed wrong memory: mgpu\w+ reports hipErrorIllegalAddress
mgpu-rt: the last launches, newest first, and their blocks:
mgpu-rt:   fill in stream 1 at [0-9.]+ ms
mgpu-rt:     (?P<block>0x\w+): 1,024 bytes from \S+ \(far\+0x\w+\)
"""
)


def command(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mgpu_rt", *map(str, words)],
        cwd=ROOT,
        env=environment("cuda"),
        capture_output=True,
        text=True,
        timeout=HANG,
    )


def test_a_fault_names_the_last_launches_and_their_blocks(tmp_path: Path) -> None:
    program = lower.link(
        [lower.lower(FAR, llvm=22, chip=CHIP, image="bin")],
        libraries=[library()],
        rpath=[library().parent],
        out=tmp_path / "far",
    )
    trace = tmp_path / "trace.json"
    done = command("run", "--device", "cuda", "--trace", trace, "--", program)
    assert done.returncode >= 0  # the driver ends no process
    told = RAN.search(done.stderr)
    assert told, done.stderr
    block = told["block"]
    end = hex(int(block, 16) + 1024)
    first, *others = command("stats", trace, "--address", end).stdout.splitlines()
    assert first == f"address {end}: 0 bytes past the end of a block of 1,024 bytes at {block}"
    assert any(line.startswith("  given to fill in stream 1 at ") for line in others)
