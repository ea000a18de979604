"""Processes that stay alive and run a program in rounds, one runtime after the other.

The runtimes take turns, so a disturbance of the machine affects all of them.
"""

from __future__ import annotations

import contextlib
import random
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence

from bench.setup import native

METHOD = (
    "medians over rounds of about 20 ms, one in each side's process in random order; ratios are of "
    "the rounds of one turn. The first round of each process does not count, nor does a quarter of "
    "a round before each one. On a GPU the main thread of each process is pinned to one processor, "
    "the same for all."
)
ROUND_NS = 20e6
MOST = 10_000  # calls in a round
#: Before each round a process makes this fraction of the round's calls, so that effects of the
#: previous runtime do not count.
LEAD = 0.25

#: The command and the environment of a process that runs a program in rounds.
Process = tuple[Sequence[str], Mapping[str, str]]


class Runner:
    """The running processes of one runtime, one or several, which run each round at once."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], at_once: int = 1
    ) -> None:
        self._command = command
        # stderr is a file, because nobody would read a pipe while the process runs.
        self._said = tempfile.TemporaryFile("w+")  # noqa: SIM115 - as long as the process
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self._said}
        self._processes = [
            subprocess.Popen(command, env=environment, text=True, **pipes) for _ in range(at_once)
        ]

    def round(self, calls: int) -> int:
        """Returns the nanoseconds that the program takes for `calls` calls."""
        self.request(calls)
        return self.answer()

    def request(self, calls: int) -> None:
        """Makes the program begin a round."""
        for process in self._processes:
            assert process.stdin is not None
            with contextlib.suppress(BrokenPipeError):  # answer() reports the end
                process.stdin.write(f"{calls}\n")
                process.stdin.flush()

    def answer(self) -> int:
        """Waits for the end of the requested round; returns the slowest process's nanoseconds."""
        answers = [process.stdout.readline() for process in self._processes if process.stdout]
        if not all(answers):
            self.kill()
            raise native.Failed(f"{' '.join(self._command)} ended: {self._words()}")
        return max(map(int, answers))

    def close(self) -> None:
        """Ends the processes. Raises Failed if a call in them failed, because their times would
        then mean nothing."""
        # Reads stderr before the process exits: at the exit LLVM's own library reports failures,
        # because the library unloads modules after the driver has ended.
        words = self._words()
        self.kill(wait=60)
        if "failed with" in words:
            raise native.Failed(f"{' '.join(self._command)}: {words}")

    def kill(self, wait: float = 0) -> None:
        """Ends the processes, by force if necessary."""
        for process in self._processes:
            try:
                process.communicate(timeout=wait)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()

    def _words(self) -> str:
        """Returns the first 2,000 characters of the processes' stderr."""
        self._said.seek(0)
        return self._said.read(2000).strip()


def turns(
    processes: Mapping[str, Process],
    count: int,
    order: random.Random,
    most: int = MOST,
    iterations: int = 1,
    at_once: int = 1,
) -> dict[str, list[float]]:
    """For each runtime, returns the microseconds of an iteration in each turn. A round makes at
    most ``most`` calls, each with so many iterations, in each of ``at_once`` processes.

    The order of the runtimes changes, because effects of a runtime (on the GPU's clocks or caches)
    may show in the next runtime's round.
    """
    with _started(processes, at_once) as runners:
        for runner in runners.values():  # all start the driver at once, which takes most time
            runner.request(1)
        for runner in runners.values():
            runner.answer()
        calls = {name: _calls(runner, most) for name, runner in runners.items()}
        taken: dict[str, list[float]] = {name: [] for name in runners}
        for _ in range(count):
            for name in order.sample(list(runners), len(runners)):
                runners[name].round(max(1, round(LEAD * calls[name])))
                ns = runners[name].round(calls[name])
                taken[name].append(ns / 1e3 / (calls[name] * iterations))
    return taken


@contextlib.contextmanager
def _started(processes: Mapping[str, Process], at_once: int) -> Iterator[dict[str, Runner]]:
    """Starts all processes before the first round, and ends them after the last round."""
    runners: dict[str, Runner] = {}
    try:
        for name, process in processes.items():
            runners[name] = Runner(*process, at_once)
        yield runners
        for runner in runners.values():
            runner.close()
    finally:
        for runner in runners.values():
            runner.kill()


def _calls(runner: Runner, most: int) -> int:
    """Returns the number of calls in a round."""
    return max(1, min(round(ROUND_NS / max(runner.round(1), 1)), most))
