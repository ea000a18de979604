"""A run of the fuzzers, parsed from libFuzzer's output and shown in README.md."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
README = HERE / "README.md"
ON_RECORD = 60  # seconds for each reader in the recorded run

_TABLE = re.compile(r"(<!-- table -->\n).*?(<!-- end -->)", re.DOTALL)
_LAST_STATE = re.compile(r"^#\d+\s.*\bcov: (\d+) ft: (\d+) corp: (\d+)/", re.MULTILINE)


@dataclass(frozen=True)
class Run:
    """The run of one reader."""

    reader: str
    runs: int
    edges: int  # edges of the reader's control flow that an input took
    features: int  # edges, with how often each was taken
    corpus: int  # inputs that were kept because each showed something new
    findings: int  # inputs that ended the process


def parse(reader: str, said: str, status: int) -> Run:
    """Parses a result from libFuzzer's stderr and exit status."""
    executed = re.search(r"stat::number_of_executed_units:\s+(\d+)", said)
    states = _LAST_STATE.findall(said)
    edges, features, corpus = map(int, states[-1]) if states else (0, 0, 0)
    runs = int(executed.group(1)) if executed else 0
    return Run(reader, runs, edges, features, corpus, int(status != 0))


def table(title: str, runs: list[Run]) -> str:
    """Returns the table for README.md."""
    lines = [
        title,
        "",
        "| reader | inputs | edges | features | corpus | findings |",
        "|---|---|---|---|---|---|",
    ]
    for run in runs:
        lines.append(
            f"| {run.reader} | {run.runs:,} | {run.edges:,} | {run.features:,} "
            f"| {run.corpus:,} | {run.findings} |"
        )
    return "\n".join(lines)


def refreshed(text: str, shown: str) -> str:
    """Returns README.md with another table."""
    return _TABLE.sub(lambda match: f"{match[1]}{shown}\n{match[2]}", text)
