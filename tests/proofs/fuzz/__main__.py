"""Runs the fuzzers: `python -m tests.proofs.fuzz [--seconds N] [--jobs N] READER ...` (make fuzz).

If every reader ran for at least a minute, writes the results to README.md's table.
"""

from __future__ import annotations

import argparse
import datetime
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.proofs.fuzz import seeds

HERE = Path(__file__).resolve().parent
BUILD = HERE.parents[2] / "build" / "fuzz"
README = HERE / "README.md"
ON_RECORD = 60  # seconds for each reader in the recorded run
LONGEST = 1 << 15  # bytes of an input; code objects among the seeds have 5,000

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


def _plant(reader: str) -> Path:
    """Returns the folder of a reader's inputs, after writing the seeds into it."""
    corpus = BUILD / reader / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for number, content in enumerate(seeds.SEEDS[reader]()):
        (corpus / f"seed-{number}").write_bytes(content)
    return corpus


def _run(reader: str, seconds: int) -> Run:
    corpus = _plant(reader)
    command = [
        str(BUILD / f"fuzz-{reader}"),
        f"-max_total_time={seconds}",
        f"-max_len={LONGEST}",
        "-print_final_stats=1",
        "-close_fd_mask=2",  # hides the output of the readers
        "-timeout=10",
        f"-artifact_prefix={BUILD / reader}/",
        str(corpus),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 300)
    run = parse(reader, done.stderr, done.returncode)
    if run.findings:
        print(done.stderr[-4000:], file=sys.stderr)
    print(f"{reader}: {run.runs:,} inputs, {run.findings} findings", flush=True)
    return run


def _keep(runs: list[Run], seconds: int) -> None:
    if seconds < ON_RECORD or {run.reader for run in runs} != set(seeds.SEEDS):
        return
    clang = subprocess.run(["clang-22", "--version"], capture_output=True, text=True).stdout
    day, compiler = datetime.date.today().isoformat(), clang.splitlines()[0]
    text = table(f"{day}, {seconds} seconds each, {compiler}:", runs)
    README.write_text(refreshed(README.read_text(), text))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("readers", nargs="+", choices=sorted(seeds.SEEDS))
    arguments = parser.parse_args()
    with ThreadPoolExecutor(arguments.jobs) as pool:
        runs = list(pool.map(lambda reader: _run(reader, arguments.seconds), arguments.readers))
    _keep(runs, arguments.seconds)
    return 1 if any(run.findings for run in runs) else 0


if __name__ == "__main__":
    raise SystemExit(main())
