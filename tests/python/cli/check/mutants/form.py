"""The form of a seeded fault, and its run."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from bench import ROOT
from tests.python.cli.check.test_check import check
from tests.python.runtime.hooked import program

THREADS = {"MGPU_RT_SOFTGPU": "gfx90a,threads=4"}

Report = dict[str, Any]


@dataclass(frozen=True)
class Mutant:
    """A fault: in `source`, behind the text `after`, `old` becomes `new`.

    check has to report `kind` at a line that holds `line`, and nothing of another kind."""

    source: str  # a file of MLIR in the project
    what: str  # was done, as "barrier taken out"; a class of the table in docs/check.md
    kind: str  # of the reports
    old: str
    new: str
    line: str  # a part of the line that one of the reports, or its other side, names
    after: str = ""
    also: tuple[str, ...] = ()  # kinds that may be reported beside it

    def text(self) -> str:
        """The source with the fault."""
        text = (ROOT / self.source).read_text()
        begin = text.index(self.after)
        at = text.index(self.old, begin)
        changed = text[:at] + self.new + text[at + len(self.old) :]
        assert changed != text
        return changed


def run(mutant: Mutant) -> list[Report]:
    """The reports of check."""
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory, f"mutant{os.getpid()}.mlir")
        source.write_text(mutant.text())
        built = program.__wrapped__(source, lines=True)  # another file each time
        out = Path(directory, "reports.json")
        done = check("--json", out, "--", built, **THREADS)
        assert out.exists(), done.stderr
        return json.loads(out.read_text())["reports"]


@cache
def _lines(text: str) -> list[str]:
    return text.splitlines()


def lines_of(mutant: Mutant, report: Report) -> list[str]:
    """The lines of the program that a report names: of the access, of the other side, of the call
    and of the calls around it."""
    places = [report.get("line"), report.get("other", {}).get("line")]
    places += [frame.get("line") for frame in report.get("place", [])]
    places += [frame.get("line") for frame in report.get("other", {}).get("place", [])]
    numbers = [int(place.rsplit(":", 1)[1]) for place in places if place]
    return [_lines(mutant.text())[number - 1] for number in numbers]


def assert_found(mutant: Mutant) -> None:
    """Asserts that a fault is found, on its line, and nothing else."""
    found = run(mutant)
    assert {report["kind"] for report in found} - {*mutant.also} == {mutant.kind}, found
    wanted = [report for report in found if report["kind"] == mutant.kind]
    named = [line for report in wanted for line in lines_of(mutant, report)]
    assert any(mutant.line in line for line in named), named
