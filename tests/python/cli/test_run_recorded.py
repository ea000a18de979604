"""Tests `mgpu-rt run --stats-json` and `--trace`: the command waits for the program, passes signals
on, ends as the program ends, and writes the outputs of all processes."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import known, recordings
from tests.support.child import environment, library
from tests.support.command import COMMAND
from tests.support.hosting import ends
from tests.support.patience import HANG, run_process, wait_until

PROGRAM = r"""
#include "program.h"

static void told(int number) {
    const char digits[] = {'0' + number / 10, '0' + number % 10, '\n'};
    (void)!write(1, digits, sizeof digits);
    _exit(40);
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    if (strcmp(how, "children") == 0)
        for (int i = 0; i < 2; i++)
            if (fork() == 0) {
                mgpuMemAlloc(64, mgpuStreamCreate(), 0);
                exit(0);
            }
    while (wait(NULL) > 0)
        continue;
    if (strcmp(how, "daemon") == 0 && fork() == 0) {
        mgpuStreamCreate();
        printf("%d\n", getpid());
        fflush(stdout);
        fclose(stdout);
        fclose(stderr);
        pause();
    }
    if (strcmp(how, "handles") == 0) {
        signal(SIGTERM, told);
        signal(SIGINT, told);
        signal(SIGQUIT, told);
    }
    mgpuStreamCreate();
    if (strcmp(how, "kill") == 0)
        raise(atoi(argv[2]));
    if (strcmp(how, "daemon") == 0) {
        char line;
        while (read(0, &line, 1) > 0)
            continue;
    }
    if (strcmp(how, "waits") == 0 || strcmp(how, "handles") == 0) {
        printf("%d\n", getpid());
        fflush(stdout);
        pause();
    }
    return argc > 2 ? atoi(argv[2]) : 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return known.program(tmp_path_factory.mktemp("run"), PROGRAM)


def run_in(folder: Path, *words: object, **more: Any) -> subprocess.CompletedProcess[str]:
    """Runs a command line in a folder, over the stub of HIP."""
    env = environment(MGPU_RT_MANAGER="off", HIPSTUB_MODE="fast", **more.pop("env", {}))
    return run_process(list(map(str, words)), env, cwd=folder, **more)


STATS = ("run", "--device", "hip", "--stats-json", "s.json")


def run(program: Path, folder: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    options = (COMMAND, *STATS, "--trace", "t.json", "--")
    return run_in(folder, *options, program, *words, env=env)


@contextlib.contextmanager
def start(program: Path, folder: Path, how: str) -> Iterator[subprocess.Popen[str]]:
    """Starts the command in a process group of its own, as a shell starts a job. The kernel stops
    no process of a group without a parent, and the tests may be in such a group. A test that fails
    ends the group."""
    with subprocess.Popen(
        [COMMAND, *STATS, "--", program, how],
        cwd=folder,
        env=environment(MGPU_RT_MANAGER="off", HIPSTUB_MODE="fast"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=os.setpgrp,
    ) as running:
        try:
            yield running
        except BaseException:
            os.killpg(running.pid, signal.SIGKILL)
            raise


def state_of(process: int) -> str:
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]


def pending(process: int) -> set[int]:
    (line,) = re.findall(r"ShdPnd:\s+(\w+)", Path(f"/proc/{process}/status").read_text())
    return {number for number in range(1, 65) if int(line, 16) >> number - 1 & 1}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("status", [0, 7])
def test_the_command_ends_with_the_programs_status(
    status: int, program: Path, tmp_path: Path
) -> None:
    done = run(program, tmp_path, "", str(status))
    assert (done.returncode, done.stderr) == (status, "")
    assert names(tmp_path) == ["s.json", "t.json"]
    stats = json.loads((tmp_path / "s.json").read_text())
    assert stats["process"]["ended"] == "exit"
    assert stats["abi"]["mgpuStreamCreate"]["calls"] == 1
    assert json.loads((tmp_path / "t.json").read_text())["otherData"]["ended"] == "exit"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_the_command_ends_by_the_signal_that_ended_the_program(
    number: signal.Signals, program: Path, tmp_path: Path
) -> None:
    done = run(program, tmp_path, "kill", str(number.value))
    assert (done.returncode, done.stderr) == (-number, "")
    assert json.loads((tmp_path / "s.json").read_text())["process"]["ended"] == "unfinished"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT])
def test_signals_reach_the_program(number: signal.Signals, program: Path, tmp_path: Path) -> None:
    with start(program, tmp_path, "handles") as running:
        assert running.stdout
        assert int(running.stdout.readline()) != running.pid
        running.send_signal(number)
        out, said = running.communicate(timeout=HANG)
    assert (running.returncode, out, said) == (40, f"{number.value:02}\n", "")
    assert names(tmp_path) == ["s.json"]


def test_the_command_stops_and_continues_with_the_program(program: Path, tmp_path: Path) -> None:
    with start(program, tmp_path, "handles") as running:
        assert running.stdout
        child = int(running.stdout.readline())
        running.send_signal(signal.SIGTSTP)
        _, status = os.waitpid(running.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        assert state_of(child) == "T"
        running.send_signal(signal.SIGCONT)
        running.send_signal(signal.SIGTERM)
        out, said = running.communicate(timeout=HANG)
    assert (running.returncode, out, said) == (40, f"{signal.SIGTERM.value}\n", "")


def test_the_command_goes_on_while_only_the_program_is_stopped(
    program: Path, tmp_path: Path
) -> None:
    """A debugger stops the program by SIGSTOP, and continues only the program. The command passes
    on a signal with a number above SIGCHLD's after it has seen the stop."""
    with start(program, tmp_path, "handles") as running:
        assert running.stdout
        child = int(running.stdout.readline())
        os.kill(child, signal.SIGSTOP)
        assert wait_until(lambda: state_of(child) == "T")
        running.send_signal(signal.SIGIO)
        assert wait_until(lambda: signal.SIGIO in pending(child))
        os.kill(child, signal.SIGCONT)
        running.communicate(timeout=HANG)
    assert running.returncode == -signal.SIGIO


#: Starts mgpu-rt where tempfile finds no folder that can be written.
NO_FOLDER = """
import tempfile
def gettempdir(): raise FileNotFoundError(2, "No usable temporary directory found in [...]")
tempfile.gettempdir = gettempdir
from mgpu_rt._cli.main import main
main()
"""


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("run", "--stats"), 2),
        (("run", "--stats-json", "s.json"), 7),  # the recording lies beside the output
        (("run", "--stats-json", "/dev/null"), 2),
        (("compare",), 2),
    ],
)
def test_a_missing_folder_for_temporary_files_is_named(
    words: tuple[str, ...], status: int, program: Path, tmp_path: Path
) -> None:
    started = (sys.executable, "-c", NO_FOLDER, *words, "--device", "hip", "--")
    done = run_in(tmp_path, *started, program, "", "7")
    assert done.returncode == status, done.stderr
    named = "mgpu-rt: No usable temporary directory found in [...]"
    assert done.stderr.startswith(named) == ("s.json" not in words)


def test_a_program_does_not_outlive_a_killed_command(program: Path, tmp_path: Path) -> None:
    """The recording stays, and can be read."""
    with start(program, tmp_path, "waits") as running:
        assert running.stdout
        child = int(running.stdout.readline())
        running.kill()
        running.wait(HANG)
        assert ends(child)
    (folder,) = (path for path in tmp_path.iterdir() if path.is_dir())
    assert recordings.stats(folder / str(child))["process"]["pid"] == child


@pytest.mark.check
def test_each_child_has_outputs_of_its_own(program: Path, tmp_path: Path) -> None:
    done = run(program, tmp_path, "children")
    assert (done.returncode, done.stderr) == (0, "")
    found = {name: json.loads((tmp_path / name).read_text()) for name in names(tmp_path)}
    stats = {name: each["process"]["pid"] for name, each in found.items() if name[0] == "s"}
    main = stats.pop("s.json")
    assert len(stats) == 2 and main not in stats.values()
    assert stats == {f"s.{pid}.json": pid for pid in stats.values()}
    others = {f"t.{pid}.json" for pid in stats.values()}
    assert {name for name in found if name[0] == "t"} == {"t.json", *others}


@pytest.mark.parametrize(("how", "number", "word"), [("", 0, 0), ("kill", 9, 1)])
def test_a_line_says_why_a_killed_program_printed_no_table(
    how: str, number: int, word: int, program: Path, tmp_path: Path
) -> None:
    done = run_in(tmp_path, COMMAND, "run", "--stats", "--", program, how, number)
    assert done.returncode == -number
    assert done.stderr.count("mgpu_rt: statistics of process") == 1 - word
    assert done.stderr.count("it has not ended by exit, so it printed no table") == word


def test_notes_name_the_process_if_there_are_several(program: Path, tmp_path: Path) -> None:
    words = ("run", "--device", "hip", "--stats", "--stats-json", "s.json", "--", program)
    done = run_in(tmp_path, COMMAND, *words, "children")
    children = [name.split(".")[1] for name in names(tmp_path) if name != "s.json"]
    for pid in children:
        assert f"mgpu-rt: process {pid}: memory that the driver allocated" in done.stderr
    assert len(children) == 2


def test_a_rank_shows_in_the_names(program: Path, tmp_path: Path) -> None:
    done = run(program, tmp_path, OMPI_COMM_WORLD_RANK="3")
    assert (done.returncode, done.stderr) == (0, "")
    assert names(tmp_path) == ["s.rank3.json", "t.rank3.json"]


def test_a_child_that_still_runs_has_its_calls_so_far(program: Path, tmp_path: Path) -> None:
    with start(program, tmp_path, "daemon") as running:
        assert running.stdout and running.stdin
        child = int(running.stdout.readline())
        try:
            running.stdin.close()
            assert running.wait(HANG) == 0
            path = tmp_path / f"s.{child}.json"
            assert json.loads(path.read_text())["process"]["ended"] == "unfinished"
            assert names(tmp_path) == [path.name, "s.json"]
        finally:
            os.kill(child, signal.SIGKILL)


def test_an_output_may_be_a_pipe(program: Path, tmp_path: Path) -> None:
    words = ("run", "--device", "hip", "--stats-json", "/dev/stdout", "--", program)
    done = run_in(tmp_path, COMMAND, *words)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["abi"]["mgpuStreamCreate"]["calls"] == 1


def test_a_caller_may_ignore_the_end_of_children(tmp_path: Path) -> None:
    """The kernel then sends no signal at a child's end, unless the command asks for it. The program
    inherits the setting."""
    code = f"""
import ctypes, signal
ctypes.CDLL({str(library())!r}).mgpuStreamCreate()
raise SystemExit(7 if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN else 1)
"""
    ignored = {"preexec_fn": lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN)}
    done = run_in(tmp_path, COMMAND, *STATS, "--", sys.executable, "-c", code, **ignored)
    assert (done.returncode, done.stderr) == (7, "")
    assert names(tmp_path) == ["s.json"]


def test_a_job_of_the_shell_reads_the_terminal_and_gets_ctrl_c_once(
    program: Path, tmp_path: Path
) -> None:
    """The terminal sends SIGINT to the process group, so the command does not pass it on."""
    code = f"""
import os, pty, signal, sys
pid, terminal = pty.fork()
if not pid:
    os.execv({str(COMMAND)!r}, ["mgpu-rt", *{STATS}, "--", sys.executable, "-c", '''
import ctypes, signal, sys, time
ctypes.CDLL({str(library())!r}).mgpuStreamCreate()
seen = []
signal.signal(signal.SIGINT, lambda *_: seen.append(1))
print("ready", input("name?"), flush=True)
while not seen: time.sleep(0.01)
time.sleep(0.3)
print("seen", len(seen), flush=True)
'''])
out = b""
while b"name?" not in out: out += os.read(terminal, 1000)
os.write(terminal, b"Ann\\n")
while b"ready Ann" not in out: out += os.read(terminal, 1000)
os.write(terminal, b"\\x03")
try:
    while b"seen 1" not in out and b"seen 2" not in out: out += os.read(terminal, 1000)
except OSError: pass
os.waitpid(pid, 0)
sys.exit(b"seen 1" not in out)
"""
    done = run_in(tmp_path, sys.executable, "-c", code)
    assert done.returncode == 0
    assert names(tmp_path) == ["s.json"]
