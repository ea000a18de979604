"""Plays the situations with a runtime on a device, and prints the state after each situation."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pathlib import Path

from tests.runtime.last_error import images
from tests.support import known
from tests.support.child import STUB, environment
from tests.support.folders import folder
from tests.support.patience import run_process

SOURCES = Path(__file__).resolve().parent
PENDING = ("none", "device", "memory")

_MARKED = re.compile(r"^\[(\w+)\n(.*?)^\]$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Left:
    """The state after a call. The fields `peeked` and `read` are the thread's last error, and
    `said` contains the printed lines without advice."""

    peeked: int
    read: int
    said: tuple[str, ...]


#: Outcomes of situations without a state: the situation ended the process, or the runtime or HIP
#: lacks the situation's function.
ENDED = "ended the process"
NOT_CALLED = "was not called"
Result = Left | str


@functools.cache
def _images() -> Path:
    """Returns the folder that contains the images."""
    made = folder("last_error")
    images.write(made)
    return made


@functools.cache
def _program(runtime: Path) -> Path:
    """Returns the program, linked with a runtime."""
    flags = ("-O1", "-Wall", "-Wextra", "-Werror", f"-I{SOURCES}", f"-I{_images()}")
    made = folder(f"last_error_{runtime.parent.name}")
    return known.program(made, (SOURCES / "program.c").read_text(), *flags, runtime=runtime)


def _environment(backend: str, **changes: str) -> dict[str, str]:
    env = environment(backend, MGPU_RT_MANAGER="off", **changes)
    if backend == "stub":
        env["LD_LIBRARY_PATH"] = str(STUB.parent)  # stock finds HIP there
    return env


@dataclass
class Played:
    """Outcomes of the situations on a release of HIP, in order."""

    hip: int  # hipRuntimeGetVersion's number
    results: dict[str, Result]

    def ended(self) -> set[str]:
        return {name for name, result in self.results.items() if result == ENDED}


def play(runtime: Path, backend: str, pending: str, **changes: str) -> Played:
    """Plays all situations. If a situation ends the process, a new process plays the situations
    that follow."""
    played = Played(0, {})
    first = 0
    while True:
        words = [_program(runtime), _images(), pending, first]
        done = run_process(
            [str(word) for word in words], _environment(backend, **changes), errors="replace"
        )
        lines = done.stdout.splitlines()
        _read(played, lines, done.stderr)
        if lines and lines[-1] == "done":
            return played
        begun = [line.split() for line in lines if line[0].isdigit()]
        if not begun or done.returncode == 2:
            raise AssertionError(f"exit status {done.returncode}\n{done.stderr}")
        number, name = begun[-1]
        played.results[name] = ENDED
        first = int(number) + 1


def _read(played: Played, lines: list[str], stderr: str) -> None:
    said = {name: text.splitlines() for name, text in _MARKED.findall(stderr)}
    for line in lines:
        words = line.split()
        if words[0] == "hip":
            played.hip = int(words[1])
        elif words[0].isdigit():
            played.results[words[1]] = NOT_CALLED
        elif len(words) == 3:
            failures = (text for text in said[words[0]] if text.startswith("'"))
            played.results[words[0]] = Left(int(words[1]), int(words[2]), tuple(failures))


def differences(ours: Played, stocks: Played) -> dict[str, tuple[Result, Result]]:
    """Returns the situations in which the two runtimes differ. Leaves out each situation in which
    stock ended the process, and each situation that stock could not play."""
    return {
        name: (ours.results[name], theirs)
        for name, theirs in stocks.results.items()
        if isinstance(theirs, Left) and ours.results[name] != theirs
    }
