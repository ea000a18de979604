"""Tests the folder of a recording. No other user reads or replaces the folder, and the folder of
each launch is complete."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from mgpu_rt._recordings.folder import LAUNCH, LaunchFolder, claim
from tests.support.child import environment
from tests.support.patience import HANG, wait_until


def launches(path: Path) -> list[Path]:
    return sorted(path.glob("[!.]*"))


# ---- folders that only one user may enter ----


def test_only_its_owner_enters_it(tmp_path: Path) -> None:
    out = tmp_path / "new" / "recording"
    made = LaunchFolder(out)
    name = made.keep(b"content")
    assert made.keep(b"content") == name
    made.finish(b"{}")
    (launch,) = launches(out)
    paths = (out, launch, launch / LAUNCH, launch / name)
    assert [stat.S_IMODE(path.stat().st_mode) for path in paths] == [0o700, 0o700, 0o600, 0o600]


def test_a_folder_of_others_is_refused(tmp_path: Path) -> None:
    """Another user with write permission created the folder before the first launch."""
    out, elsewhere = tmp_path / "recording", tmp_path / "elsewhere"
    elsewhere.mkdir(0o700)
    out.symlink_to(elsewhere)
    with pytest.raises(OSError, match="the path is a symbolic link"):
        LaunchFolder(out)
    out.unlink()
    out.mkdir(0o755)
    with pytest.raises(OSError, match=r"others may enter the folder \(its mode is 755, not 700"):
        LaunchFolder(out)
    if os.geteuid() == 0:
        os.chown(out, 12345, -1)
        with pytest.raises(OSError, match="the folder is another user's"):
            LaunchFolder(out)
    assert os.listdir(elsewhere) == []


def test_no_link_in_it_is_followed(tmp_path: Path) -> None:
    """The library follows no link, even if a link replaces the opened folder."""
    out, secret = tmp_path / "recording", tmp_path / "secret"
    secret.write_bytes(b"secret")
    made = LaunchFolder(out)
    name = made.keep(b"content")
    out.rename(tmp_path / "moved")
    (tmp_path / "planted").mkdir()
    out.symlink_to("planted")
    other = made.keep(b"other")
    (inner,) = (tmp_path / "moved").iterdir()
    (inner / LAUNCH).symlink_to(secret)
    with pytest.raises(OSError, match="File exists"):
        made.finish(b"{}")
    assert secret.read_bytes() == b"secret"
    assert (inner / name).read_bytes() == b"content"
    assert (inner / other).read_bytes() == b"other"
    assert os.listdir(tmp_path / "planted") == []
    made.discard()
    assert os.listdir(tmp_path / "moved") == []


def test_a_new_recording_takes_an_empty_folder(tmp_path: Path) -> None:
    """A folder may be empty: the program made no launch, or a rank has just started."""
    out = tmp_path / "recording"
    for _ in range(2):
        claim(str(out))
    made = LaunchFolder(out)
    made.keep(b"content")
    claim(str(out))  # the launch is not complete
    made.finish(b"{}")
    with pytest.raises(FileExistsError):
        claim(str(out))
    (tmp_path / "file").write_text("")
    with pytest.raises(FileExistsError):
        claim(str(tmp_path / "file"))


# ---- complete launches ----


RECORDING = """
import sys
from mgpu_rt._recordings.folder import LaunchFolder
for number in range(int(sys.argv[2])):
    made = LaunchFolder(sys.argv[1])
    made.finish(made.keep(b"%d" % number).encode())
"""


def recording(out: Path, count: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", RECORDING, out, str(count)], env=environment())


def contents(out: Path) -> list[int]:
    """Returns the numbers in the launches, in their order."""
    return [int((path / (path / LAUNCH).read_text()).read_bytes()) for path in launches(out)]


def test_processes_that_record_in_one_folder_lose_no_launch(tmp_path: Path) -> None:
    """The ranks of an MPI job record into one folder concurrently."""
    processes = [recording(tmp_path / "recording", 50) for _ in range(4)]
    assert [process.wait(HANG) for process in processes] == [0] * 4
    assert sorted(contents(tmp_path / "recording")) == sorted([*range(50)] * 4)


def test_a_process_that_is_killed_leaves_what_was_complete(tmp_path: Path) -> None:
    out = tmp_path / "recording"
    process = recording(out, 10**9)
    written = wait_until(lambda: len(launches(out)) > 20)
    process.kill()
    assert written
    process.wait(HANG)
    numbers = contents(out)
    assert numbers == [*range(len(numbers))]
