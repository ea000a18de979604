"""Counts instructions and calls in the loop with callgrind, whose counts are the same on a busy
machine."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.setup import native
from tests.support.patience import run_process

# These options make callgrind write whole paths and names, so that parse() can read each line
# separately.
CALLGRIND = [
    *("--tool=callgrind", "--collect-systime=yes"),
    *("--compress-strings=no", "--compress-pos=no"),
]
# Callgrind counts only the instructions between entry and return of `measured` in
# bench/native/calls.c.
MEASURED = ["--zero-before=measured", "--dump-after=measured"]
_COST = re.compile(r"^(?:0x)?[0-9a-f]+((?: \d+)+)$")


@dataclass
class Profile:
    """The counts of one loop, over all iterations."""

    iterations: int
    system_calls: int = 0
    #: The number of instructions for each pair: the file of the library or program, and the
    #: function. A function's count excludes its callees.
    instructions: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def functions(self) -> set[str]:
        """Returns all functions of the run."""
        return {function for (_, function), count in self.instructions.items() if count}

    def per_iteration(self, library: str = "") -> float:
        """Returns the instructions of an iteration, in all libraries or in the libraries whose file
        name begins with ``library``."""
        total = sum(n for (name, _), n in self.instructions.items() if name.startswith(library))
        return total / self.iterations


def parse(text: str, iterations: int) -> Profile:
    """Reads a callgrind file (format: valgrind's manual, "Callgrind Format Specification")."""
    profile = Profile(iterations)
    library = function = ""
    events: list[str] = []
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith("events: "):
            events = line.split()[1:]
        elif line.startswith("ob="):
            library = Path(line[3:]).name
        elif line.startswith("fn="):
            function = line[3:]
        elif line.startswith("calls="):
            next(lines)  # the called function's cost, which is counted there
        elif match := _COST.match(line):
            # A line of costs may omit trailing zeros.
            costs = dict(zip(events, map(int, match[1].split()), strict=False))
            profile.instructions[library, function] += costs.get("Ir", 0)
            profile.system_calls += costs.get("sysCount", 0)
    return profile


def available() -> bool:
    """Returns whether valgrind is installed (apt-get install valgrind)."""
    return shutil.which("valgrind") is not None


def count(
    calls: int,
    runtime: Path = native.RUNTIME,
    *,
    iterations: int = 1000,
    copy: bool = False,
    variables: Mapping[str, str] | None = None,
) -> Profile:
    """Profiles the forum's loop on the stub. An iteration makes 7 or 5 calls to a runtime, or 2
    calls to HIP.

    The profile begins after the initialisation. Python is switched off, because a cache hit does
    not depend on Python. With ``copy`` the image and the name are not constants of the program.
    """
    native.need(runtime, native.STUB)
    env = native.stub_environment(**{"MGPU_RT_MANAGER": "off", **(variables or {})})
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch, "callgrind.out")
        options = [*CALLGRIND, *MEASURED, f"--callgrind-out-file={out}"]
        command = ["valgrind", *options, native.program("calls")]
        arguments = ["count", native.STUB, iterations, calls, f"runtime,{runtime}"]
        native.run([*command, *arguments, *(["copy"] if copy else [])], env)
        return parse(Path(f"{out}.1").read_text(), iterations)


def count_program(executable: Path, iterations: int, env: Mapping[str, str]) -> Profile:
    """Profiles a lowered program (bench/native/lowered.c) whose loop has `iterations` iterations.

    Subtracts a run of two calls of main from a run of three calls, so only the third call counts.
    """

    def whole(calls: int) -> Profile:
        with tempfile.TemporaryDirectory() as scratch:
            out = Path(scratch, "callgrind.out")
            command = ["valgrind", *CALLGRIND, f"--callgrind-out-file={out}"]
            run_process([*command, executable], env, input=f"{calls}\n", check=True)
            return parse(out.read_text(), iterations)

    longer, shorter = whole(3), whole(2)
    longer.instructions.subtract(shorter.instructions)
    longer.system_calls -= shorter.system_calls
    return longer
