"""`mgpu-rt check RECORDING` checks a recorded launch in the same way as a launch of a running
program."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
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
from tests.support.command import NO_FAULT, UNEXAMINED, assert_sentence, command

NAME = b'x"""; raise SystemExit(\'ran\') # \\x {0} \xff\x1b[31m'


def record(source: str, kernel: str, out: Path, *words: object) -> Path:
    """Runs the program, and records the launches of one kernel."""
    words = ("run", "--device", "softgpu", "--kernel", kernel, *words, "--record", out)
    command(*words, "--", program(HERE / source, lines=True), **hip())
    assert launches_of(out)
    return out


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record("right.mlir", "*", tmp_path_factory.mktemp("right") / "recording")


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record("faults.mlir", "size_cut", tmp_path_factory.mktemp("faulty") / "recording")


def test_a_fault_is_found_on_its_line(faulty: Path, tmp_path: Path) -> None:
    done = check("--json", tmp_path / "json", faulty)
    (report,) = json.loads((tmp_path / "json").read_text())["reports"]
    found = (report["kind"], report["kernel"], report["access"], behind(report))
    assert found == ("out-of-bounds", "size_cut", "store", 0)
    number = int(report["line"].removeprefix("faults.mlir:"))
    assert "memref.store" in (HERE / "faults.mlir").read_text().splitlines()[number - 1]
    assert (done.returncode, done.stdout) == (1, "")
    assert "just behind memory block 0 [out-of-bounds]\n  at faults.mlir:" in done.stderr
    assert "allocated by" not in done.stderr and "called by" not in done.stderr
    assert done.stderr.endswith(f"\nmgpu-rt: 1 fault{UNEXAMINED}\n")


@pytest.mark.check
def test_a_race_is_found(tmp_path: Path) -> None:
    names = [line.split("@")[1].split("(")[0] for line in gpu_functions("races.mlir")]
    done = check(record("races.mlir", names[0], tmp_path / "recording"))
    assert done.returncode == 1 and "[race]\n  at races.mlir:" in done.stderr, done.stderr


def gpu_functions(source: str) -> list[str]:
    lines = (HERE / source).read_text().splitlines()
    return [line for line in lines if "gpu.func" in line]


@pytest.mark.check
def test_a_right_launch_has_no_fault(right: Path) -> None:
    done = check("--launch", 2, right)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", NO_FAULT)


@pytest.mark.check
def test_another_launch_is_chosen(tmp_path: Path) -> None:
    out = record("faults.mlir", "*", tmp_path / "recording", "--nth", 1)
    names = [launch["kernel"] for launch in launches_of(out)]
    number = names.index("index_shifted") + 1
    assert f"launch 1 of {len(names)} in this recording; --launch chooses" in check(out).stderr
    done = check("--launch", number, out)
    assert "error: kernel index_shifted stores" in done.stderr and " in this " not in done.stderr
    done = check("--launch", len(names) + 1, out)
    assert_sentence(done.returncode, done.stderr, f"the recording has 1 to {len(names)}")


def test_the_images_device_is_emulated(right: Path, tmp_path: Path) -> None:
    done = check("--device", "cuda", right)
    assert_sentence(done.returncode, done.stderr, "checked on an emulated device")
    ptx = b".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry x() { ret; }\n\0"
    other = tmp_path / "recording"
    name = hashlib.sha256(ptx).hexdigest()
    changed(right, other, lambda launch: launch.update(image=name))
    (folders_of(other)[0] / name).write_bytes(ptx)
    done = check("--launch", 1, other)
    assert_sentence(
        done.returncode, done.stderr, "image is for sm_90, and check emulates only gfx90a"
    )


@pytest.mark.check
def test_a_hostile_name_is_a_name(faulty: Path, tmp_path: Path) -> None:
    evil = Path(os.fsdecode(bytes(tmp_path) + b"/" + NAME))
    shutil.copytree(faulty, evil)
    assert check(evil).stderr.endswith(f"\nmgpu-rt: 1 fault{UNEXAMINED}\n")
    (folders_of(evil)[0] / "launch.json").write_bytes(b"\x1b[31m\n")
    done = check(evil)
    assert_sentence(done.returncode, done.stderr, "is no launch")
    assert "\x1b" not in done.stderr


@pytest.mark.check
def test_a_recording_without_asked_sizes_is_checked_by_the_blocks(
    faulty: Path, tmp_path: Path
) -> None:
    """If the size that the program requested is unknown, HIP's size counts."""
    old = changed(faulty, tmp_path / "old", lambda launch: launch["blocks"][0].update(asked=None))
    assert check(old).returncode == 0
    more = changed(faulty, tmp_path / "more", lambda launch: launch["blocks"][0].update(asked=513))
    done = check(more)
    assert_sentence(
        done.returncode, done.stderr, "a block has fewer bytes than the program asked for"
    )
