"""Runs the fuzzers: `python -m tests.proofs.fuzz [--seconds N] [--jobs N] READER` (make fuzz)."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.proofs.fuzz import seeds

HERE = Path(__file__).resolve().parent
BUILD = HERE.parents[2] / "build" / "fuzz"
README = HERE / "README.md"
LONGEST = 1 << 15  # bytes of an input; code objects among the seeds have 5,000


def _plant(reader: str) -> Path:
    """Returns the folder of a reader's inputs, after writing the seeds into it."""
    corpus = BUILD / reader / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for number, content in enumerate(seeds.SEEDS[reader]()):
        (corpus / f"seed-{number}").write_bytes(content)
    return corpus


def _run(reader: str, seconds: int) -> bool:
    """Returns whether no input has ended the process."""
    command = [
        str(BUILD / f"fuzz-{reader}"),
        f"-max_total_time={seconds}",
        f"-max_len={LONGEST}",
        "-print_final_stats=1",
        "-close_fd_mask=2",  # hides the output of the readers
        "-timeout=10",
        f"-artifact_prefix={BUILD / reader}/",
        str(_plant(reader)),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 300)
    inputs = re.search(r"stat::number_of_executed_units:\s+(\d+)", done.stderr)
    if done.returncode or not inputs:
        print(f"{reader}: a finding\n{done.stderr[-4000:]}", file=sys.stderr, flush=True)
        return False
    print(f"{reader}: {int(inputs[1]):,} inputs", flush=True)
    return True


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("readers", nargs="+", choices=sorted(seeds.SEEDS))
    arguments = parser.parse_args()
    with ThreadPoolExecutor(arguments.jobs) as pool:
        runs = pool.map(lambda reader: _run(reader, arguments.seconds), arguments.readers)
        return 0 if all(list(runs)) else 1


if __name__ == "__main__":
    raise SystemExit(main())
