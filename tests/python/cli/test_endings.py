"""How commands end: Ctrl-C, folders that exist, crashes that stock shares."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from mgpu_rt._cli import executable, files, softgpu
from mgpu_rt._cli.errors import CommandError
from tests.support.child import ROOT, environment
from tests.support.command import COMMAND, command
from tests.support.patience import HANG, run_process, wait_until
from tests.support.suites import in_check

#: Calls the library, tells the test, and waits for Ctrl-C.
WAITS = (
    "import ctypes, os, sys, time; ctypes.CDLL(None).mgpuStreamSynchronize(None);"
    "open(sys.argv[1], 'w').close(); time.sleep(600)"
)

#: Waits for an event that was never recorded, first.
FAULTY = (
    "import ctypes; mgpu = ctypes.CDLL(None); mgpu.mgpuEventCreate.restype = ctypes.c_void_p;"
    f"mgpu.mgpuEventSynchronize(ctypes.c_void_p(mgpu.mgpuEventCreate())); {WAITS}"
)

WAITERS = [
    ("run", "--stats-json", "s.json", "--"),
    ("run", "--record", "launches", "--"),
    ("run", "--"),
    ("check", "--"),
    ("compare", "--"),
    ("diff", "--device", "softgpu,softgpu", "--"),
]


def waiting(words: tuple[str, ...], folder: Path, program: str = WAITS) -> subprocess.Popen[str]:
    """Starts a command, and returns it once its program waits."""
    env = environment("stub", MGPU_RT_HIP=str(softgpu.hip({})), TMPDIR=str(folder))
    running = subprocess.Popen(
        [COMMAND, *words, sys.executable, "-c", program, "here"],
        cwd=folder,
        env=env,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )
    end = time.monotonic() + HANG
    while not (folder / "here").exists() and running.poll() is None and time.monotonic() < end:
        time.sleep(0.05)
    return running


@pytest.mark.parametrize("send", in_check([os.killpg, os.kill], lambda send: send is os.kill))
@pytest.mark.parametrize("words", WAITERS, ids=lambda words: " ".join(words[:2]))
def test_ctrl_c_is_130(
    words: tuple[str, ...], send: Callable[[int, int], None], tmp_path: Path
) -> None:
    """As a shell shows it: by the signal, or by the status 130. `timeout --foreground`
    sends the signal to the command, and not to its process group."""
    running = waiting(words, tmp_path)
    send(running.pid, signal.SIGINT)
    _, stderr = running.communicate(timeout=HANG)
    assert running.returncode in (130, -signal.SIGINT), stderr
    assert "mgpu-rt: Aborted" not in stderr and "nothing to compare" not in stderr


def _wakeups(process: int) -> str:
    """Returns how often the main thread of a process has given up its processor."""
    return next(
        line
        for line in Path(f"/proc/{process}/status").read_text().splitlines()
        if line.startswith("voluntary_ctxt_switches")
    )


@pytest.mark.parametrize("words", WAITERS[3:], ids=lambda words: words[0])
def test_a_command_runs_no_loop_beside_the_program(words: tuple[str, ...], tmp_path: Path) -> None:
    """The loop would take time from the program that the command measures."""

    def is_quiet() -> bool:
        before = _wakeups(running.pid)
        time.sleep(1)
        return _wakeups(running.pid) == before

    running = waiting(words, tmp_path)
    try:
        assert wait_until(is_quiet)
    finally:
        running.kill()
        running.communicate(timeout=HANG)


#: Signals its process group, and writes how often the signal came.
SIGNALS_ITSELF = """
import ctypes, os, signal, time
ctypes.CDLL(None).mgpuStreamSynchronize(None)
seen = []
signal.signal(signal.SIGINT, lambda *_: seen.append(1))
os.kill(0, signal.SIGINT)
time.sleep(0.3)
open("seen", "a").write(str(len(seen)))
"""


@pytest.mark.parametrize("words", WAITERS, ids=lambda words: " ".join(words[:2]))
def test_a_programs_own_signal_does_not_come_back(words: tuple[str, ...], tmp_path: Path) -> None:
    env = environment("stub", MGPU_RT_HIP=str(softgpu.hip({})))
    program = [COMMAND, *words, sys.executable, "-c", SIGNALS_ITSELF]
    run_process(program, env, cwd=tmp_path, start_new_session=True)
    assert (tmp_path / "seen").read_text() == "1"


@pytest.mark.parametrize("words", WAITERS, ids=lambda words: " ".join(words[:2]))
def test_the_program_ends_with_a_command_that_is_killed(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    """The program would hold stderr, and the GPU."""
    running = waiting(words, tmp_path)
    running.send_signal(signal.SIGTERM)
    running.communicate(timeout=HANG)
    assert running.returncode == -signal.SIGTERM
    assert not list(tmp_path.glob("mgpu-rt-*"))


def send_as_timeout_does(process: int, number: int) -> None:
    os.kill(process, number)
    os.killpg(process, number)


@pytest.mark.parametrize(
    ("number", "send"),
    [
        *product((signal.SIGINT, signal.SIGTERM), (os.killpg, os.kill)),
        (signal.SIGTERM, send_as_timeout_does),  # a second SIGINT ends check without reports
    ],
)
def test_check_reports_what_it_found_before_a_signal(
    number: signal.Signals, send: Callable[[int, int], None], tmp_path: Path
) -> None:
    running = waiting(("check", "--json", "found", "--"), tmp_path, FAULTY)
    send(running.pid, number)
    _, stderr = running.communicate(timeout=HANG)
    assert running.returncode in (128 + number, -number), stderr
    assert "[unrecorded-event]" in stderr
    end = f"mgpu-rt: 1 fault before signal {number.value} ({number.name}) ended the program"
    assert end in stderr
    assert (tmp_path / "found").exists()
    assert not list(tmp_path.glob("mgpu-rt-*"))


def test_a_folder_that_exists_gets_a_number(tmp_path: Path) -> None:
    folder = str(tmp_path / "recording")
    assert files.claim(folder) == folder
    (tmp_path / "recording" / "launch").touch()
    assert files.claim(folder) == f"{folder}-2"
    (tmp_path / "recording-2" / "launch").touch()
    assert files.claim(f"{folder}/") == f"{folder}-3"
    told = f"mgpu-rt: '{folder}' exists, so '{folder}-3' gets the recording"
    assert told in command("run", "--record", folder, "--", "true").stderr.splitlines()
    with pytest.raises(CommandError, match="cannot be written"):
        files.claim("/proc/recording")


def test_a_crash_that_stock_shares_is_explained(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\n# hidden_default_queue\nkill -SEGV $$\n")
    program.chmod(0o755)
    done = command("compare", "--", program)
    assert done.returncode == 2
    assert "HIP 5.2 crashes with stock too if a kernel names hidden_default_queue" in done.stderr
    done = command("run", "--stats-json", tmp_path / "s.json", "--", program)
    assert done.returncode == -signal.SIGSEGV
    assert done.stderr.count("HIP 5.2 crashes with stock too") == 1
    assert executable.reason_in_images(str(program), 1) == ""
    assert executable.reason_in_images("sh", -signal.SIGSEGV) == ""


def test_a_current_folder_that_is_gone_is_named(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    steps = ROOT / "examples" / "steps.mlir"
    words = f"rmdir ../gone; exec {COMMAND} run --stats --device softgpu {steps}"
    done = run_process(["sh", "-c", words], environment(), cwd=tmp_path / "gone")
    assert done.returncode == 2
    assert "mgpu-rt: the current folder: No such file or directory" in done.stderr
    assert "Traceback" not in done.stderr
