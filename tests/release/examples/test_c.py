"""Tests the examples in C and C++, which CMake builds with the installed library."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.release.examples.conftest import EXAMPLES, Run, shown

pytestmark = pytest.mark.check  # built against an installed library

PROGRAMS = {
    "linked": "linked.cpp",
    "graph": "graph.c",
    "outside_stream": "outside_stream.c",
    "host_symbol": "host_symbol.c",
}


@pytest.fixture(scope="module")
def built(run: Run, prefix: Path) -> Path:
    """Returns the folder in which the index's command builds the programs."""
    run("sh", "-c", shown("c/CMakeLists.txt"))
    return prefix.parent / "examples" / "build"


def promised(source: str) -> str:
    """Returns the output that the comment at the top of a program promises."""
    text = (EXAMPLES / "c" / source).read_text(encoding="utf-8")
    block = re.search(r"Prints:\n(?:(?: \*|//)\n)((?:(?: \*|//)     .*\n)+)", text)
    assert block
    lines = (re.sub(r"^(?: \*|//)     ", "", line) for line in block[1].splitlines())
    return "".join(f"{line.removesuffix(' */')}\n" for line in lines)


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_example_prints_what_it_promises(
    program: str, run: Run, built: Path, tmp_path: Path
) -> None:
    stats = tmp_path / "stats.json"
    words = ("mgpu-rt", "run", "--device", "softgpu", "--stats-json", stats, "--", built / program)
    result = run(*words)
    assert result.stdout == promised(PROGRAMS[program])
    assert result.stderr == ""
    abi = json.loads(stats.read_text())["abi"]
    launch = "mgpuLaunchKernelRT" if program == "host_symbol" else "mgpuLaunchKernel"
    assert abi[launch]["calls"] == 1


def test_a_lent_stream_is_the_only_one(run: Run, built: Path, tmp_path: Path) -> None:
    """The program first uses its own stream, and the library creates no stream. After that use, the
    library creates a single stream."""
    stats = tmp_path / "stats.json"
    words = ("mgpu-rt", "run", "--device", "softgpu", "--stats-json", stats, "--")
    run(*words, built / "outside_stream")
    counted = json.loads(stats.read_text())
    assert counted["abi"]["mgpuStreamCreate"]["calls"] == 3
    assert counted["hip"]["hipStreamCreate"]["calls"] == 1


def test_c_launches_a_kernel_of_an_image(run: Run) -> None:
    assert run("sh", "-c", shown("c/launch.c")).stdout == promised("launch.c")


def test_the_smallest_program_prints_its_sum(run: Run, built: Path) -> None:
    version = run("mgpu-rt", "--version").stdout.split()[-1]
    assert run(built / "version").stdout == f"mgpu_rt {version}\n"
    assert run("sh", "-c", shown("c/version.c")).stdout == f"mgpu_rt {version}\n"


# ---- LLVM's JIT runners ----


@pytest.mark.parametrize("llvm", [22, 19])
def test_a_runner_prints_the_sum(llvm: int, run: Run) -> None:
    result = run("sh", "-c", shown("runner").replace("22", str(llvm)))
    assert result.stdout == "499500\n"
    assert result.stderr == ""
