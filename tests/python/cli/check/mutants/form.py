"""Describes a seeded fault, and runs the faulty program."""

from __future__ import annotations

import json
import re
import tempfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import ROOT
from mgpu_rt._cli import softgpu
from tests.python.cli import seeded
from tests.python.cli.check.test_check import check
from tests.python.runtime.hooked import program

THREADS = {"MGPU_RT_SOFTGPU": "gfx90a,threads=4"}

Report = dict[str, Any]
Edit = tuple[str, str]


@dataclass(frozen=True)
class Mutant:
    """A faulty program. check must report only faults of the kind `kind`, and must name a line that
    contains `line`."""

    of: str  # the program or kernel
    what: str  # the fault, such as "barrier taken out": a class in the table of docs/check.md
    kind: str  # kind of the reports
    text: str  # the program with the fault
    line: str  # a part of the line that a report, or its other side, must name
    also: tuple[str, ...] = ()  # other kinds that may be reported as well
    model: str = ""  # the model of bench/models whose program this is

    def reports(self, folder: Path) -> list[Report]:
        """Returns the reports of `mgpu-rt check` on the faulty program. A model makes one pass."""
        if not self.model:
            return reports_of([built(self.text, folder)], folder, **THREADS)
        name = re.sub(r"\W+", "-", f"check {self.of} {self.what} {zlib.crc32(self.text.encode())}")
        program = seeded.executable(name, self.text, self.model, lines=True)
        wait = f"{softgpu.hip({})},hipDeviceSynchronize"
        return reports_of(["sh", "-c", 'echo 1 | "$0"', program], folder, BENCH_WAIT=wait)


def replaced(text: str, edit: Edit) -> str:
    """Returns the text with an edit."""
    assert edit[0] in text and edit[0] != edit[1], edit
    return text.replace(*edit, 1)


# ---- edits: each returns a part of a text, and the new text of the part --------------------------


def operation(text: str, name: str) -> str:
    """Returns the lines of the operation whose result or token is %name."""
    head = rf"^( *)(?:%\w+, )?%{name}(?:, %\w+)? = .*\n"
    found = re.search(rf"{head}(?:\1 +\S.*\n)*", text, re.MULTILINE)
    assert found, name
    return found[0]


def changed(text: str, name: str, pattern: str, new: str) -> Edit:
    """Changes the operation %name where the pattern first matches."""
    old = operation(text, name)
    return old, re.sub(pattern, new, old, count=1)


def _dependency(operation: str) -> str:
    found = re.search(r" async (\[%\w+\])", operation)
    assert found, operation
    return found[1]


def _through_use(text: str, begin: int, token: str) -> str:
    """Returns the text from `begin` to the first operation that waits for the token."""
    use = f"[%{token}]"
    return text[begin : text.index(use, begin) + len(use)]


def left_out(text: str, token: str) -> Edit:
    """Leaves out the operation with this token."""
    out = operation(text, token)
    rest = _through_use(text, text.index(out) + len(out), token)
    return out + rest, rest.replace(f"[%{token}]", _dependency(out))


def moved_up(text: str, token: str, above: str) -> Edit:
    """Moves the operation with this token above the operation with the token `above`."""
    moved, first = operation(text, token), operation(text, above)
    begin, at = text.index(first), text.index(moved)
    rest = _through_use(text, at + len(moved), token)
    start, use = _dependency(first), f"[%{token}]"
    passed = text[begin:at].replace(start, use, 1)
    new = moved.replace(_dependency(moved), start) + passed
    return text[begin:at] + moved + rest, new + rest.replace(use, _dependency(moved))


# ---- faults that a comment names -----------------------------------------------------------------

#: A comment in a program names a fault: its class, the number of lines to replace, and the kinds of
#: the reports. A part of the line follows that a report must name, and then the new lines.
MARK = re.compile(r"^ *// fault: ([^;(]+?)(?: \((\d) lines\))?; ([^;]+); (.+?); ?(.*)$")


def marked(source: str) -> list[Mutant]:
    """Returns the faults that the comments of a program name. Each replaces the lines after its
    comment. The faulty program lacks the comments."""
    lines = (ROOT / source).read_text().splitlines()
    program = [line for line in lines if not MARK.match(line)]
    found: list[Mutant] = []
    at, function = 0, ""
    for line in lines:
        mark = MARK.match(line)
        if mark is None:
            at += 1
            begun = re.search(r"func @(\w+)", line)
            function = begun[1] if begun else function
            continue
        what, count, kinds, named, new = mark.groups()
        kind, *also = kinds.split()
        lacking = program[at + int(count or 1) :]
        faulty = "\n".join([*program[:at], *new.split(" \\n "), *lacking])
        found.append(Mutant(function, what, kind, faulty, named, (*also,)))
    return found


def reports_of(command: list[object], folder: Path, **environment: str) -> list[Report]:
    """Returns the reports of `mgpu-rt check` on a program."""
    out = folder / "reports.json"
    done = check("--json", out, "--", *command, **environment)
    assert out.exists(), done.stderr
    return json.loads(out.read_text())["reports"]


def built(text: str, folder: Path) -> Path:
    """Builds an MLIR program with line tables."""
    source = folder / "mutant.mlir"  # the name is part of the cache's key
    source.write_text(text)
    return program.__wrapped__(source, lines=True)  # a new file each time


def lines_of(text: str, report: Report) -> list[str]:
    """Returns all program lines in a report: the lines of the access and of the conflicting access,
    and the lines in the call stacks."""
    places = [report.get("line"), report.get("other", {}).get("line")]
    places += [frame.get("line") for frame in report.get("place", [])]
    places += [frame.get("line") for frame in report.get("other", {}).get("place", [])]
    numbers = [int(place.rsplit(":", 1)[1]) for place in places if place]
    return [text.splitlines()[number - 1] for number in numbers]


def assert_found(mutant: Mutant) -> None:
    """Asserts that check reports the fault on its line, and nothing else."""
    with tempfile.TemporaryDirectory() as name:
        found = mutant.reports(Path(name))
    assert {report["kind"] for report in found} - {*mutant.also} == {mutant.kind}, found
    wanted = [report for report in found if report["kind"] == mutant.kind]
    named = [line for report in wanted for line in lines_of(mutant.text, report)]
    assert any(mutant.line in line for line in named), named
