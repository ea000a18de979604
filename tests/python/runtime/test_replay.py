"""Repeats recorded launches of real kernels on softgpu."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mgpu_rt.runtime import Recording
from tests.python.runtime.hooked import changed, folders_of, hip, launches_of, program, replay
from tests.support.child import environment
from tests.support.command import COMMAND, assert_sentence, command

pytestmark = pytest.mark.check  # each replay starts a Python


@pytest.mark.check
def test_a_replay_of_several_launches_says_which_it_makes(tmp_path: Path) -> None:
    out = tmp_path / "recording"
    words = ("run", "--device", "softgpu", "--nth", 0, "--kernel", "halve", "--record", out)
    assert command(*words, "--", program(), **hip()).returncode == 0
    first, second = replay(out), replay(out, "--launch", 2)
    assert first.stderr == "mgpu-rt: launch 1 of 2 in this recording; --launch chooses another\n"
    assert (first.returncode, second.returncode, second.stderr) == (0, 0, "")


def test_a_missing_image_is_named(recorded: Path, tmp_path: Path) -> None:
    done = replay(recorded, "--image", tmp_path / "none")
    assert_sentence(
        done.returncode, done.stderr, "No such file or directory; name a file that holds an image"
    )


def test_a_replay_leaves_the_same_memory(recorded: Path) -> None:
    done = replay(recorded)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("halve: same, ")


def test_a_replay_with_another_block_size_leaves_the_same(recorded: Path) -> None:
    done = replay(recorded, "--grid", 4, "--block", 16, "--iterations", 3)
    assert done.stdout.startswith("halve: same, median ")


def test_a_replay_that_writes_less_says_where(recorded: Path) -> None:
    done = replay(recorded, "--grid", 1, "--tolerance", 0.5)
    assert done.returncode == 1
    differ = "memory block 0: 32 elements (f32) differ, the first is element 32, largest error 2"
    assert differ in done.stdout
    assert replay(recorded, "--grid", 1, "--tolerance", 3).returncode == 0


@pytest.mark.check
def test_a_replay_takes_another_image(recorded: Path, tmp_path: Path) -> None:
    image = tmp_path / "image"
    image.write_bytes((folders_of(recorded)[0] / launches_of(recorded)[0]["image"]).read_bytes())
    assert replay(recorded, "--image", image).returncode == 0
    assert replay(recorded, "--image", program()).returncode == 0  # the program holds the image
    image.write_bytes(b"nothing")
    done = replay(recorded, "--image", image)
    assert_sentence(done.returncode, done.stderr, "holds no device code")


#: Names of folders that a program or a terminal would interpret as other text.
NAMES = [
    b'x"""; import os; os.system(\'touch here\'); """',
    b"a\\x and ' \" {0} %s",
    b"\xff\xe2\x80\xae\x1b[31m\nb",
]


@pytest.mark.check
@pytest.mark.parametrize("name", NAMES)
def test_a_folders_name_is_only_a_name(name: bytes, recorded: Path, tmp_path: Path) -> None:
    """The folder's name is never run as code."""
    folder = tmp_path / os.fsdecode(name)
    folder.symlink_to(recorded)
    env = environment("softgpu", MGPU_RT_MANAGER="off")
    words = [COMMAND, "replay", "--device", "softgpu", folder]
    done = subprocess.run(words, env=env, cwd=tmp_path, capture_output=True)
    assert (done.returncode, done.stdout[:13]) == (0, b"halve: same, "), done.stderr
    assert not (tmp_path / "here").exists()


@pytest.mark.check
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
    assert again.stdout.startswith(f"{shown}: same, ")
    assert f"  kernel {shown}\n" in read.stdout
    for said in (traced.stderr, kept.stderr, again.stdout, read.stdout):
        assert all(line.isprintable() for line in said.splitlines())


@pytest.mark.check
@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_may_lack_letters(encoding: str, recorded: Path, tmp_path: Path) -> None:
    def rename(launch: dict[str, Any]) -> None:
        launch["label"] = "h\u20aclve\x1b[31m\n"

    copy = changed(recorded, tmp_path / "copy", rename)
    words = [COMMAND, "replay", "--device", "softgpu", copy]
    env = environment(**hip(), PYTHONIOENCODING=encoding)
    done = subprocess.run(words, env=env, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"lve\\u001b[31m\\u000a: same, " in done.stdout


def test_a_recording_that_was_changed_is_refused(recorded: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(recorded, tmp_path / "copy"))
    blob = folders_of(copy)[0] / launches_of(copy)[0]["blocks"][0]["before"]
    blob.write_bytes(b"\1" + blob.read_bytes()[1:])
    done = replay(copy)
    assert (done.returncode, "is not what was recorded" in done.stderr) == (2, True)


def test_a_recording_with_other_results_differs(recorded: Path, tmp_path: Path) -> None:

    def undo(launch: dict[str, Any]) -> None:
        (block,) = launch["blocks"]
        block["after"] = block["before"]

    assert replay(changed(recorded, tmp_path / "copy", undo)).returncode == 1


def test_an_unknown_type_is_named(recorded: Path) -> None:
    done = replay(recorded, "--tolerance", 1, "--dtype", "f33")
    assert_sentence(done.returncode, done.stderr, "'f33' is not a type of numbers: name one of f16")


def test_a_folder_that_may_not_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recording has mode 0700, so another user cannot read it."""

    def refuse(*_: object) -> list[str]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "listdir", refuse)
    with pytest.raises(ValueError, match=f"'{tmp_path}' cannot be read: Permission denied"):
        Recording(tmp_path)


def test_a_folder_that_is_no_recording_is_named(tmp_path: Path) -> None:
    done = replay(tmp_path / "nothing")
    assert_sentence(done.returncode, done.stderr, "is not a folder")
    done = replay(tmp_path)
    assert_sentence(done.returncode, done.stderr, "holds no launch: no recording in it is complete")
