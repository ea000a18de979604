"""Sequences of calls that csrc/selftest/player plays, and the comparison of the player's output.

A case contains sequences for one process. The tests' random driver writes the sequences. The
driver's model supplies the expected results. All other results must equal stock's: whether a handle
is null, which last error the thread has, and which failures are printed. The process must end with
status 0. Lines that begin with `mgpu_rt:` are advice, and are not compared.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mgpu_rt._cli import child

_RESULT = re.compile(r"(\d+) (\d+) (.*)")
_FAILURE = re.compile(r"'.*' failed with '.*'")
#: If a failure's line ends with this text, NVIDIA's driver has already shut down. The number of
#: later failures is random: a thread may still make calls when main returns.
_ENDED = "failed with 'hipErrorDeinitialized'"
#: The player's numbers for steps that run after the exit handlers of NVIDIA's driver. Number 21
#: stands for a late exit handler, number 22 for a destructor (csrc/selftest/player/player.c).
_AFTER_NVIDIAS_END = ("21", "22")
#: Matches lines that may occur between results and failures: advice, and empty lines.
_ADVICE = re.compile(r"mgpu_rt: |$")


@dataclass
class Output:
    """The lines that a process wrote, grouped by sequence."""

    results: dict[int, dict[int, str]] = field(default_factory=dict)
    failures: dict[int, list[str]] = field(default_factory=dict)
    other: list[str] = field(default_factory=list)
    status: int | str = 0
    begun: int = -1  # the last sequence that began
    driver_ended: bool = False

    def add(self, line: str) -> None:
        found = _RESULT.fullmatch(line)
        if found:
            sequence, number, text = int(found[1]), int(found[2]), found[3]
            if text == "begin":
                self.begun = sequence
            self.results.setdefault(sequence, {})[number] = text
        elif _FAILURE.fullmatch(line):
            self.driver_ended |= line.endswith(_ENDED)
            if self.driver_ended:
                return
            self.failures.setdefault(self.begun, []).append(line)
        elif not _ADVICE.match(line):
            self.other.append(line)


@dataclass
class Case:
    """Sequences for one process, and the expected result of each line. None stands for stock's
    result."""

    images: list[str]
    threads: dict[int, int]
    lines: dict[int, list[str]]
    expected: dict[int, dict[int, str | None]]
    late: bool = False  # the foreign user opens HIP at its first call
    linked: bool = False  # the program is linked against HIP
    crosses: bool = (
        False  # one side destroys the other's objects: asking HIP about a dead handle is no fault
    )
    fails: str = ""  # which of the library's own allocations do (tests/support/allocator.c)
    #: The sides on which the case is played. An empty list stands for all sides that allow other
    #: code to call HIP.
    sides: list[str] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)  # of the library, but stock's behaviour
    #: The failing calls of each sequence, for a case that is not played with stock's behaviour.
    failures: dict[int, list[str]] = field(default_factory=dict)
    known: bool = False  # stock's behaviour does not tell the results
    devices: int = 1
    amd: bool = False  # NVIDIA's driver is not asked, or has other answers

    def text(self) -> str:
        """Returns the script for the player."""
        lines = ["images " + " ".join(self.images)]
        for number, body in self.lines.items():
            lines += [f"begin {number} {self.threads[number]}", *body, "end"]
        return "\n".join(lines) + "\n"

    def plays(self, *steps: str) -> bool:
        """Returns whether the case has one of the given steps."""
        return any(line.split()[1] in steps for body in self.lines.values() for line in body)

    def with_nvidia(self) -> Case:
        """Removes steps that NVIDIA's driver lacks. Once NVIDIA's driver has ended, each call fails
        without any work. After the driver's end, stock's behaviour reports a failure for each call;
        the library reports no failure for calls that a cache serves. NVIDIA's driver sets no last
        error for a call that the library refuses (csrc/runtime/driver/refusal.h)."""

        def keep(line: str, known: str | None) -> bool:
            return line.split()[0] not in _AFTER_NVIDIAS_END and known != "an error"

        return self.only(keep)

    def only(self, keep: Callable[[str, str | None], bool]) -> Case:
        """Returns the case with the lines that `keep` selects, given a line and the line's expected
        result."""
        lines, expected = {}, {}
        for number, body in self.lines.items():
            known = self.expected[number]
            kept = [i for i, line in enumerate(body, 1) if keep(line, known.get(i))]
            lines[number] = [body[i - 1] for i in kept]
            expected[number] = {new: known[i] for new, i in enumerate(kept, 1) if i in known}
        return replace(self, lines=lines, expected=expected)

    @staticmethod
    def read(text: str | bytes) -> Case:
        read = json.loads(text)
        for name in ("threads", "lines", "expected", "failures"):
            read[name] = {int(number): value for number, value in read.get(name, {}).items()}
        read["expected"] = {
            number: {int(line): text for line, text in lines.items()}
            for number, lines in read["expected"].items()
        }
        return Case(**read)


def run(command: Sequence[str], env: Mapping[str, str], timeout: float) -> Output:
    """Runs the player, and keeps only whole lines, because a thread may still be writing a line
    when main returns."""
    ended = child.run(command, env, limit=timeout, **{**child.PIPES, "stderr": subprocess.STDOUT})
    said = Output(status=child.HUNG if ended.status is None else ended.status)
    lines, _, _ = ended.stdout.rpartition("\n")
    for line in lines.split("\n"):
        said.add(line)
    return said


def _is_less_misuse(have: str | None, want: str | None, case: Case) -> bool:
    """Returns True if the runtime misuses HIP at most as often as stock does. The runtime may
    refuse calls that stock passes to HIP."""
    texts = [text or "misuse 0" for text in (have, want)]
    if not all(text.startswith("misuse ") for text in texts):
        return False
    mine, stocks = (int(text.split()[1]) for text in texts)
    return case.crosses or mine <= stocks


def _is_had_at_hand(have: str | None, want: str | None) -> bool:
    """Returns True if the runtime served a call from its idle objects although HIP would refuse the
    call. For a call that idle objects serve, the runtime prints no failure and sets no error."""
    return have == "had 0" and (want or "").startswith("refused ")


def _wrong_lines(said: Output, case: Case, stock: Output | None, number: int) -> list[str]:
    results, lines = said.results.get(number, {}), case.expected[number]
    theirs = stock.results.get(number, {}) if stock else {}
    found = []
    for line in sorted((lines.keys() | results.keys() | theirs.keys()) - {0}):
        have, want = results.get(line), lines.get(line)
        if want is None and stock is None:
            continue
        want = want or theirs.get(line)
        if _is_had_at_hand(have, want):
            continue
        if have != want and not _is_less_misuse(have, want, case):
            found.append(f"program {number}, line {line}: {have!r}, not {want!r}")
    return found


def _wrong_failures(said: Output, case: Case, stock: Output, number: int) -> list[str]:
    have, want = (list(one.failures.get(number, ())) for one in (said, stock))
    if case.known:  # the error's number depends on the release
        have = [line.partition("' failed with ")[0].removeprefix("'") for line in have]
        want = case.failures.get(number, [])
    if case.threads[number] > 1:
        have.sort()
        want.sort()
    results, theirs = said.results.get(number, {}), stock.results.get(number, {})
    at_hand = sum(_is_had_at_hand(text, theirs.get(line)) for line, text in results.items())
    if at_hand and len(want) - len(have) == at_hand and not Counter(have) - Counter(want):
        return []
    return [] if have == want else [f"program {number}: fails {have}, not {want}"]


def differences(said: Output, case: Case, stock: Output | None) -> list[str]:
    """Returns every difference from the model, or from stock's results. Look at the first
    difference: later ones may follow from it."""
    found = []
    if said.status != 0:
        found.append(f"status {said.status}, in program {said.begun}")
    elif said.results.get(0, {}).get(0) != "bye":
        found.append("the end of the process was not reached")
    found += [f"said: {line}" for line in said.other[:40]]
    for number in case.expected:
        if said.status != 0 and number > said.begun:
            break
        found += _wrong_lines(said, case, stock, number)
        if stock is not None:
            found += _wrong_failures(said, case, stock, number)
    return found
