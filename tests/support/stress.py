"""Repeats the tests under load, and prints which tests failed, and how often.

    python -m tests.support.stress [RUNS] [TEST...] [--jobs N] [--check]

Tests that rely on time fail under load. The loads in LOADS alternate from run to run. With --jobs
N, N runs proceed at once and slow each other down; for a single run, the command starts busy
processes. The output of a failed run is kept under build/stress. Without TEST, the command repeats
the tests of `make test`, or of `make check` with --check. Exit status 1 if anything failed.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "build" / "stress"
RUNS = 20
CORES = os.cpu_count() or 1

#: The busy processes end when this process ends.
SPIN = "import os; parent = os.getppid()\nwhile os.getppid() == parent: pass"
#: Writes small files one after the other, with a sync to disk, in the folder that its argument
#: names.
WRITE = """
import os, sys
parent = os.getppid()
while os.getppid() == parent:
    with open(os.path.join(sys.argv[1], "file"), "wb") as file:
        file.write(os.urandom(1 << 20))
        os.fsync(file.fileno())
"""


@dataclass(frozen=True)
class Load:
    """A load on the machine during a run of the tests, and the commands that cause the load."""

    name: str
    prefix: tuple[str, ...] = ()
    writing: int = 0  # processes that write files to the disk
    options: tuple[str, ...] = ()  # of pytest's


LOADS = (
    Load("other work alone"),
    Load("one core", ("taskset", "-c", "0")),
    Load("the lowest priority", ("nice", "-n", "19")),
    Load("files written to the disk all the time", writing=2),
    Load("four workers a core", options=("-n", str(4 * CORES))),
)


@contextlib.contextmanager
def loaded(load: Load, busy: int) -> Iterator[None]:
    """Runs a number of busy processes as long as the `with` block runs."""
    with tempfile.TemporaryDirectory(dir=OUT) as folder:
        commands = [[sys.executable, "-S", "-c", SPIN]] * busy
        for number in range(load.writing):
            Path(folder, str(number)).mkdir()
            commands.append([sys.executable, "-S", "-c", WRITE, str(Path(folder, str(number)))])
        processes = [subprocess.Popen([*load.prefix, *command]) for command in commands]
        try:
            yield
        finally:
            for process in processes:
                process.kill()
                process.wait()


def run(number: int, load: Load, target: str, tests: list[str], jobs: int) -> list[str]:
    """Runs the tests once under a load; returns the tests that failed."""
    log = OUT / f"run-{number}.txt"
    options = ["-q", "-rfE", "-p", "no:cacheprovider", "-n", "auto", "-m", target, *load.options]
    command = [*load.prefix, sys.executable, "-m", "pytest", *options, *tests]
    with loaded(load, busy=2 * CORES if jobs == 1 else 0), log.open("w") as said:
        status = subprocess.run(command, cwd=ROOT, stdout=said, stderr=said).returncode
    lines = log.read_text().splitlines()
    failed = [line.split()[1] for line in lines if line.startswith(("FAILED ", "ERROR "))]
    if status and not failed:
        failed = [f"the run itself, with status {status}"]
    if not failed:
        log.unlink()
    last = lines[-1] if lines else "nothing ran"
    print(f"run {number + 1}, {load.name}: {last}", *failed, sep="\n  ", flush=True)
    return failed


def stress(runs: int, target: str, tests: list[str], jobs: int) -> Iterator[list[str]]:
    """Yields each run when the run ends."""
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    with ThreadPoolExecutor(jobs) as pool:
        loads = [LOADS[number % len(LOADS)] for number in range(runs)]
        started = [pool.submit(run, i, load, target, tests, jobs) for i, load in enumerate(loads)]
        try:
            yield from (one.result() for one in as_completed(started))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="tests.support.stress", description="repeat the tests under load"
    )
    parser.add_argument("runs", type=int, nargs="?", default=RUNS)
    parser.add_argument("tests", nargs="*", help="files or folders; none: everything")
    parser.add_argument("--jobs", type=int, default=2, help="runs that go on at once")
    parser.add_argument("--check", action="store_true", help="the tests of make check")
    options = parser.parse_args()
    target = "check" if options.check else "test"
    ran = list(stress(options.runs, target, options.tests, options.jobs))
    failures = Counter(name for failed in ran for name in failed)
    for name, times in failures.items():
        print(f"{name}: failed in {times} of {len(ran)} runs, see {OUT.relative_to(ROOT)}")
    print(f"{len(ran)} runs")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
