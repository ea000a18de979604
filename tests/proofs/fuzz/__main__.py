"""Runs the fuzzers: `python -m tests.proofs.fuzz [--seconds N] [--jobs N] READER ...` (make fuzz).

If every reader ran for at least a minute, writes the results to README.md's table.
"""

from __future__ import annotations

import argparse
import datetime
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.proofs.fuzz import report, seeds

BUILD = report.ROOT / "build" / "fuzz"
LONGEST = 1 << 15  # bytes of an input; code objects among the seeds have 5,000


def _plant(reader: str) -> Path:
    """Returns the folder of a reader's inputs, after writing the seeds into it."""
    corpus = BUILD / reader / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for number, content in enumerate(seeds.SEEDS[reader]()):
        (corpus / f"seed-{number}").write_bytes(content)
    return corpus


def _run(reader: str, seconds: int) -> report.Run:
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
    run = report.parse(reader, done.stderr, done.returncode)
    if run.findings:
        print(done.stderr[-4000:], file=sys.stderr)
    print(f"{reader}: {run.runs:,} inputs, {run.findings} findings", flush=True)
    return run


def _keep(runs: list[report.Run], seconds: int) -> None:
    if seconds < report.ON_RECORD or {run.reader for run in runs} != set(seeds.SEEDS):
        return
    clang = subprocess.run(["clang-22", "--version"], capture_output=True, text=True).stdout
    day, compiler = datetime.date.today().isoformat(), clang.splitlines()[0]
    text = report.table(f"{day}, {seconds} seconds each, {compiler}:", runs)
    report.README.write_text(report.refreshed(report.README.read_text(), text))


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
