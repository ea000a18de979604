"""Repeats recorded launches of real kernels on softgpu."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.python.runtime.hooked import changed, folders_of, hip, launches_of, program, replay
from tests.support.command import assert_sentence, command

pytestmark = pytest.mark.check  # each replay starts a Python


def test_a_replay_of_several_launches_says_which_it_makes(tmp_path: Path) -> None:
    out = tmp_path / "recording"
    words = ("run", "--device", "softgpu", "--nth", 0, "--kernel", "halve", "--record", out)
    assert command(*words, "--", program(), **hip()).returncode == 0
    first, second = replay(out), replay(out, "--launch", 2)
    assert first.stderr == "mgpu-rt: launch 1 of 2 in this recording; --launch chooses another\n"
    assert (first.returncode, second.returncode, second.stderr) == (0, 0, "")


def test_a_replay_leaves_the_same_memory(recorded: Path) -> None:
    done = replay(recorded)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("halve: same\n")
    assert replay(folders_of(recorded)[0]).stdout.startswith("halve: same\n")
    other = replay(recorded, "--grid", 4, "--block", 16, "--iterations", 3)
    assert other.stdout.startswith("halve: same, median ")
    assert other.stderr == "mgpu-rt: EMULATED: no GPU was timed\n"


def test_a_replay_that_writes_less_says_where(recorded: Path) -> None:
    floats = ("--grid", 1, "--dtype", "f32")
    done = replay(recorded, *floats, "--tolerance", 0.5)
    assert done.returncode == 1
    differ = "memory block 0: 32 elements (f32) differ, the first is element 32, largest error 2"
    assert differ in done.stdout
    assert replay(recorded, *floats, "--tolerance", 3).returncode == 0


def test_a_type_of_elements_compares_elements(recorded: Path) -> None:
    done = replay(recorded, "--grid", 1, "--dtype", "i16")
    assert "memory block 0: " in done.stdout and " elements (i16) differ, " in done.stdout
    assert " bytes differ, " in replay(recorded, "--grid", 1).stdout


def test_a_replay_takes_another_image(recorded: Path, tmp_path: Path) -> None:
    image = tmp_path / "image"
    image.write_bytes((folders_of(recorded)[0] / launches_of(recorded)[0]["image"]).read_bytes())
    assert replay(recorded, "--image", image).returncode == 0
    assert replay(recorded, "--image", program()).returncode == 0  # the program holds the image
    image.write_bytes(b"nothing")
    done = replay(recorded, "--image", image)
    assert_sentence(done.returncode, done.stderr, "holds no device code")


TWO = """
func.func @main() {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %data = gpu.alloc () : memref<1xi32>
  {}
  {}
  gpu.dealloc %data : memref<1xi32>
  return
}}
"""
LAUNCH = """gpu.launch blocks(%bx, %by, %bz) in (%gx = %one, %gy = %one, %gz = %one)
                      threads(%tx, %ty, %tz) in (%sx = %one, %sy = %one, %sz = %one) {{
    %number = arith.constant {} : i32
    memref.store %number, %data[%zero] : memref<1xi32>
    gpu.terminator
  }}"""


def test_a_replay_finds_the_module_among_kernels_of_one_name(tmp_path: Path) -> None:
    """Each gpu.launch of a function becomes a kernel main_kernel in a gpu.module of its own."""
    before, after = tmp_path / "before.mlir", tmp_path / "after.mlir"
    before.write_text(TWO.format(*map(LAUNCH.format, (1, 2))))
    after.write_text(TWO.format(*map(LAUNCH.format, (1, 3))))
    out, other = tmp_path / "recording", tmp_path / "after"
    on = ("--device", "softgpu")
    assert command("run", *on, "--nth", 0, "--record", out, before, **hip()).returncode == 0
    made = command("lower", "--emit", "executable", after, "-o", other)
    assert made.returncode == 0, made.stderr
    first, second = (replay(out, "--launch", n, "--image", other) for n in (1, 2))
    assert first.returncode == 0 and ": same\n" in first.stdout, first
    assert second.returncode == 1 and "1 bytes differ" in second.stdout, second


def test_a_kernels_name_is_only_a_name(tmp_path: Path) -> None:
    """Hooks and commands print the control characters in a kernel's name as escapes."""
    evil, shown = tmp_path / "evil", r"\u001b\u000a\u009bh"
    evil.write_bytes(program().read_bytes().replace(b"halve", b"\x1b\n\xc2\x9bh"))
    evil.chmod(0o755)
    on, out = ("--device", "softgpu"), tmp_path / "recording"
    traced = command("run", *on, "--hook", "trace", "--nth", 1, "--", evil, **hip())
    kept = command("run", *on, "--record", out, "--", evil, **hip())
    again = replay(out, "--launch", 1)
    read = command("inspect", "--no-device", evil, **hip())
    assert traced.stderr.startswith(f"{shown}<2, 32>(0x")
    assert kept.stderr.startswith(f"mgpu_rt: recorded launch 1 of {shown}, 256 bytes, in ")
    assert again.stdout.startswith(f"{shown}: same\n")
    assert f"  kernel {shown}\n" in read.stdout
    for said in (traced.stderr, kept.stderr, again.stdout, read.stdout):
        assert all(line.isprintable() for line in said.splitlines())


def test_a_terminal_may_lack_letters(recorded: Path, tmp_path: Path) -> None:
    label = "h\u20aclve\x1b[31m\n"
    copy = changed(recorded, tmp_path / "copy", lambda launch: launch.update(label=label))
    done = command("replay", "--device", "softgpu", copy, **hip(), PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert "lve\\u001b[31m\\u000a: same\n" in done.stdout


def test_a_recording_that_was_changed_is_refused(recorded: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(recorded, tmp_path / "copy"))
    blob = folders_of(copy)[0] / launches_of(copy)[0]["blocks"][0]["before"]
    blob.write_bytes(b"\1" + blob.read_bytes()[1:])
    done = replay(copy)
    assert (done.returncode, "is not what was recorded" in done.stderr) == (2, True)
