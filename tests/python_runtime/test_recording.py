"""Launches that are recorded: real kernels on softgpu."""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from bench import PROGRAMS
from mgpu_rt.runtime import recording
from tests.python_runtime.hooked import hip, program, replay
from tests.support.child import environment
from tests.support.command import assert_sentence, command
from tests.support.patience import HANG


def test_a_kernel_that_shares_its_name_is_recorded_by_the_full_one(tmp_path: Path) -> None:
    out, path = tmp_path / "recording", program(PROGRAMS / "samename.mlir", 2)
    words = ("record", "--device", "softgpu", "--kernel", "second::*", "-o", out, "--", path)
    assert "recorded launch 1 of second::mark, " in command(*words, **hip()).stderr
    assert replay(out).stdout.startswith("second::mark: same, ")


def test_recording_and_replaying_need_no_numpy(
    tmp_path: Path, without_numpy: dict[str, str]
) -> None:
    """pip brings none."""
    words = ("record", "--device", "softgpu", "--kernel", "halve", "-o", tmp_path / "recording")
    done = command(*words, "--", program(), **without_numpy)
    assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr
    again = ("replay", "--device", "softgpu", tmp_path / "recording")
    assert command(*again, **without_numpy).stdout.startswith("halve: same, ")
    other = command(*again, "--grid", 1, **without_numpy)
    assert (other.returncode, "bytes differ" in other.stdout) == (1, True)
    refused = command(*again, "--tolerance", 1, **without_numpy)
    assert_sentence(refused.returncode, refused.stderr, "needs NumPy: pip install numpy")


def test_only_its_owner_can_read_a_recording(recorded: Path) -> None:
    assert recorded.stat().st_mode & 0o777 == 0o700


def test_a_program_goes_on_where_nothing_can_be_recorded() -> None:
    """All of its launches: one line names the cause."""
    words = ("record", "--device", "softgpu", "--nth", 0, "-o", "/dev/null/recording")
    done = command(*words, "--", program(), **hip())
    assert (done.returncode, done.stdout) == (0, "2\n")
    (line,) = done.stderr.splitlines()
    assert "launch 1 of " in line
    assert "are not recorded: '/dev/null/recording' cannot be written: Not a directory" in line


ENTERING = """
import sys
from pathlib import Path
from mgpu_rt.runtime.recording import Recorder
recorder = object.__new__(Recorder)
recorder._folder = Path(sys.argv[1])
for number in range(50):
    recorder._enter({"number": number})
"""


def test_processes_that_record_in_one_folder_lose_no_launch(tmp_path: Path) -> None:
    """As MPI's ranks do. Each reads the manifest and writes it whole."""
    command = [sys.executable, "-c", ENTERING, tmp_path]
    processes = [subprocess.Popen(command, env=environment()) for _ in range(4)]
    assert [process.wait(HANG) for process in processes] == [0] * 4
    launches = json.loads((tmp_path / "manifest.json").read_text())["launches"]
    assert [launch["number"] for launch in launches].count(49) == 4
    assert len(launches) == 200


@pytest.mark.parametrize("entering", [True, False])
def test_processes_that_enter_launches_are_waited_for(
    entering: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long they take together; one that enters nothing is given up."""
    looks = itertools.count()
    other = os.open(tmp_path, os.O_RDONLY)

    def sleep(_seconds: float) -> None:
        look = next(looks)
        if entering:
            os.utime(tmp_path, ns=(look, look))
        if look == 4:
            os.close(other)

    clock = itertools.count(step=recording._LONGEST)
    monkeypatch.setattr(recording, "time", SimpleNamespace(monotonic=clock.__next__, sleep=sleep))
    fcntl.flock(other, fcntl.LOCK_EX)
    given_up = pytest.raises(OSError, match="has kept this recording")
    with nullcontext() if entering else given_up, recording._alone(tmp_path):
        assert next(looks) == 5


def test_an_existing_folder_is_left_alone(recorded: Path) -> None:
    done = command("record", "--device", "softgpu", "-o", recorded, "--", "true", **hip())
    assert_sentence(done.returncode, done.stderr, "is there already")
