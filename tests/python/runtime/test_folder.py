"""Tests the folder of a recording. No other user reads or replaces the folder, and its files are
complete."""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import signal
import stat
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from mgpu_rt.runtime import _folder
from mgpu_rt.runtime._folder import BLOBS, MANIFEST, Folder, claim
from tests.support.child import environment
from tests.support.patience import HANG, wait_until


def lines(path: Path) -> list[bytes]:
    return (path / MANIFEST).read_bytes().split(b"\n")


# ---- folders that only one user may enter ----


def test_only_its_owner_enters_it(tmp_path: Path) -> None:
    out = tmp_path / "new" / "recording"
    with Folder(out) as made:
        name = made.keep(b"content")
        made.append(b"line")
    modes = {
        path: stat.S_IMODE((out / path).stat().st_mode)
        for path in ("", BLOBS, MANIFEST, f"{BLOBS}/{name}")
    }
    assert modes == {"": 0o700, BLOBS: 0o700, MANIFEST: 0o600, f"{BLOBS}/{name}": 0o600}


@pytest.mark.parametrize("planted", ["", BLOBS])
def test_a_folder_of_others_is_refused(planted: str, tmp_path: Path) -> None:
    """Another user with write permission created the folder before the first launch."""
    out, elsewhere = tmp_path / "recording", tmp_path / "elsewhere"
    elsewhere.mkdir(0o700)
    if planted:
        out.mkdir(0o700)
    (out / planted).symlink_to(elsewhere)
    with pytest.raises(OSError, match="the path is a symbolic link"):
        Folder(out)
    (out / planted).unlink()
    (out / planted).mkdir(0o755)
    with pytest.raises(OSError, match=r"others may enter the folder \(its mode is 755, not 700"):
        Folder(out)
    if os.geteuid() == 0:
        os.chown(out / planted, 12345, -1)
        with pytest.raises(OSError, match="the folder is another user's"):
            Folder(out)
    assert os.listdir(elsewhere) == []


def test_no_link_in_it_is_followed(tmp_path: Path) -> None:
    """The library follows no link, even if a link replaces the opened folder."""
    out, secret = tmp_path / "recording", tmp_path / "secret"
    secret.write_bytes(b"secret\n")
    with Folder(out) as made:
        name = made.keep(b"content")
        out.rename(tmp_path / "moved")
        (tmp_path / "planted").mkdir()
        out.symlink_to("planted")
        other = made.keep(b"other")
        moved = tmp_path / "moved"
        (moved / MANIFEST).symlink_to(secret)
        with pytest.raises(OSError, match="symbolic links"):
            made.append(b"line")
        (moved / BLOBS / name).unlink()
        (moved / BLOBS / name).symlink_to(secret)
        made.keep(b"content")
    assert secret.read_bytes() == b"secret\n"
    assert (moved / BLOBS / name).read_bytes() == b"content"
    assert (moved / BLOBS / other).read_bytes() == b"other"
    assert os.listdir(tmp_path / "planted") == []


def test_a_new_recording_takes_an_empty_folder(tmp_path: Path) -> None:
    """A folder may be empty: the program made no launch, or a rank has just started."""
    out = tmp_path / "recording"
    for _ in range(2):
        claim(str(out))
    Folder(out).__exit__()
    claim(str(out))
    with Folder(out) as made:
        made.keep(b"content")
    with pytest.raises(FileExistsError):
        claim(str(out))
    (tmp_path / "file").write_text("")
    with pytest.raises(FileExistsError):
        claim(str(tmp_path / "file"))


# ---- complete files ----


def test_a_line_costs_its_own_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cost of a launch does not grow with the number of recorded launches. In an earlier
    version, each launch rewrote all earlier launches, and 1000 launches took 55 s."""
    moved = {"read": 0, "written": 0}

    def pread(number: int, size: int, at: int) -> bytes:
        moved["read"] += size
        return os.pread(number, size, at)

    def write(number: int, content: bytes) -> int:
        moved["written"] += len(content)
        return os.write(number, content)

    monkeypatch.setattr(
        _folder, "os", SimpleNamespace(**{**vars(os), "pread": pread, "write": write})
    )
    with Folder(tmp_path / "recording") as made:
        for number in range(100):
            made.append(b"%99d" % number)
    assert moved == {"read": 99, "written": 100 * 100}


def test_a_line_that_was_cut_off_is_taken_away(tmp_path: Path) -> None:
    with Folder(tmp_path / "recording") as made:
        made.append(b"first")
        with open(tmp_path / "recording" / MANIFEST, "ab") as file:
            file.write(b"cut o")
        made.append(b"second")
    assert lines(tmp_path / "recording") == [b"first", b"second", b""]


APPENDING = """
import sys
from mgpu_rt.runtime._folder import Folder
for number in range(int(sys.argv[2])):
    with Folder(sys.argv[1]) as made:
        name = made.keep(b"%d" % number)
        made.append(b'[%d, "%s"]' % (number, name.encode()))
"""


def appending(out: Path, count: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", APPENDING, out, str(count)], env=environment())


def test_processes_that_record_in_one_folder_lose_no_launch(tmp_path: Path) -> None:
    """The ranks of an MPI job record into one folder concurrently."""
    processes = [appending(tmp_path / "recording", 50) for _ in range(4)]
    assert [process.wait(HANG) for process in processes] == [0] * 4
    *whole, end = lines(tmp_path / "recording")
    assert (end, len(whole)) == (b"", 200)
    assert [json.loads(line)[0] for line in whole].count(49) == 4
    assert len(os.listdir(tmp_path / "recording" / BLOBS)) == 50


def test_a_process_that_is_killed_leaves_what_was_complete(tmp_path: Path) -> None:
    out = tmp_path / "recording"
    process = appending(out, 10**9)
    written = wait_until(lambda: (out / MANIFEST).exists() and len(lines(out)) > 20)
    process.kill()
    assert written
    process.wait(HANG)
    with Folder(out) as made:
        made.append(b'["end", ""]')
    *whole, end = lines(out)
    numbers = [json.loads(line)[0] for line in whole]
    assert (end, numbers) == (b"", [*range(len(whole) - 1), "end"])
    assert all((out / BLOBS / json.loads(line)[1]).is_file() for line in whole[:-1])


@pytest.mark.parametrize("entering", [True, False])
def test_processes_that_enter_launches_are_waited_for(
    entering: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process waits for the lock while other processes append launches. If no process appends a
    launch for some time, the waiting process gives up."""
    looks = itertools.count()
    with Folder(tmp_path / "recording") as made:
        made.append(b"first")
        other = os.open(tmp_path / "recording" / MANIFEST, os.O_RDWR | os.O_APPEND)

        def sleep(_seconds: float) -> None:
            look = next(looks)
            if entering:
                os.write(other, b"more\n")
            if look == 4:
                os.close(other)

        clock = itertools.count(step=_folder._LONGEST)
        fake = SimpleNamespace(monotonic=clock.__next__, sleep=sleep)
        monkeypatch.setattr(_folder, "time", fake)
        fcntl.flock(other, fcntl.LOCK_EX)
        given_up = pytest.raises(OSError, match="has kept this recording")
        with nullcontext() if entering else given_up:
            made.append(b"last")
            assert next(looks) == 5
    assert lines(tmp_path / "recording")[-2:] == [b"last" if entering else b"first", b""]


LIMITED = """
import os, resource, signal, sys
from mgpu_rt.runtime._folder import Folder
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
with Folder(sys.argv[1]) as made:
    made.append(b"x" * 3000)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))
    for write in (made.keep, made.append):
        try:
            write(b"y" * 5000)
        except OSError as error:
            print(error.strerror)
    made.append(b"z" * 100)
    signal.raise_signal(signal.SIGUSR1) if signal.sigpending() else None
    os.write(os.open(sys.argv[1] + "/own", os.O_CREAT | os.O_WRONLY), b"z" * 4000)
    print("own", flush=True)
    os.write(os.open(sys.argv[1] + "/own", os.O_APPEND | os.O_WRONLY), b"z")
"""


def test_a_limit_on_the_size_of_files_ends_no_program(tmp_path: Path) -> None:
    """If a recording exceeds the user's limit on file sizes, the write fails, and the program
    continues. If the program itself exceeds the limit, the limit ends the program."""
    out = tmp_path / "recording"
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, out], env=environment(), capture_output=True
    )
    assert done.stdout == b"File too large\nFile too large\nown\n"
    assert done.returncode == -signal.SIGXFSZ
    assert [len(line) for line in lines(out)] == [3000, 100, 0]
    assert os.listdir(out / BLOBS) == []
