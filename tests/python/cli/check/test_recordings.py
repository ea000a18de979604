"""`mgpu-rt check -- mgpu-rt replay RECORDING` checks a recorded launch as the launches of any
program."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.python.cli.check.test_check import HERE, behind, check
from tests.python.runtime.hooked import (
    changed,
    folders_of,
    hip,
    launches_of,
    program,
)
from tests.support.command import COMMAND, NO_FAULT, UNEXAMINED, command

NAME = b'x"""; raise SystemExit(\'ran\') # \\x {0} \xff\x1b[31m'


def record(source: str, kernel: str, out: Path, *words: object) -> Path:
    """Runs the program, and records the launches of one kernel."""
    words = ("run", "--device", "softgpu", "--kernel", kernel, *words, "--record", out)
    command(*words, "--", program(HERE / source, lines=True), **hip())
    assert launches_of(out)
    return out


def checked(*words: object, before: tuple[object, ...] = ()) -> subprocess.CompletedProcess[str]:
    return check(*before, "--", COMMAND, "replay", *words)


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record("right.mlir", "*", tmp_path_factory.mktemp("right") / "recording")


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record("faults.mlir", "size_cut", tmp_path_factory.mktemp("faulty") / "recording")


def test_a_fault_is_found_on_its_line(faulty: Path, tmp_path: Path) -> None:
    done = checked(faulty, before=("--json", tmp_path / "json"))
    (report,) = json.loads((tmp_path / "json").read_text())["reports"]
    found = (report["kind"], report["kernel"], report["access"], behind(report))
    assert found == ("out-of-bounds", "size_cut", "store", 0)
    number = int(report["line"].removeprefix("faults.mlir:"))
    assert "memref.store" in (HERE / "faults.mlir").read_text().splitlines()[number - 1]
    assert done.returncode == 1 and done.stdout.startswith("size_cut: ")
    assert "just behind allocation 1 [out-of-bounds]\n  at faults.mlir:" in done.stderr
    assert done.stderr.endswith(f"\nmgpu-rt: 1 fault{UNEXAMINED}\n")


@pytest.mark.check
def test_a_race_is_found(tmp_path: Path) -> None:
    names = [line.split("@")[1].split("(")[0] for line in gpu_functions("races.mlir")]
    done = checked(record("races.mlir", names[0], tmp_path / "recording"))
    assert done.returncode == 1 and "[race]\n  at races.mlir:" in done.stderr, done.stderr


def gpu_functions(source: str) -> list[str]:
    lines = (HERE / source).read_text().splitlines()
    return [line for line in lines if "gpu.func" in line]


@pytest.mark.check
def test_a_right_launch_has_no_fault(right: Path) -> None:
    done = checked("--launch", 2, right)
    assert (done.returncode, done.stderr) == (0, NO_FAULT) and ": same\n" in done.stdout


@pytest.mark.check
def test_a_hostile_name_is_a_name(faulty: Path, tmp_path: Path) -> None:
    evil = Path(os.fsdecode(bytes(tmp_path) + b"/" + NAME))
    shutil.copytree(faulty, evil)
    assert checked(evil).stderr.endswith(f"\nmgpu-rt: 1 fault{UNEXAMINED}\n")
    (folders_of(evil)[0] / "launch.json").write_bytes(b"\x1b[31m\n")
    done = checked(evil)
    assert done.returncode == 2 and "is no launch" in done.stderr
    assert "\x1b" not in done.stderr


@pytest.mark.check
def test_a_recording_without_asked_sizes_is_checked_by_the_blocks(
    faulty: Path, tmp_path: Path
) -> None:
    """If the size that the program requested is unknown, HIP's size counts."""
    old = changed(faulty, tmp_path / "old", lambda launch: launch["blocks"][0].update(asked=None))
    assert NO_FAULT in checked(old).stderr
