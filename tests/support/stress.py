"""Repeats the tests under load, and prints which tests failed, and how often.

    python -m tests.support.stress [RUNS] [TEST...] [--jobs N] [--check]

Tests that rely on time fail under load. The loads in LOADS alternate from run to run. With --jobs
N, N runs proceed at once and slow each other down; for a single run, the command starts busy
processes. The output of a failed run is kept under build/stress. Without TEST, the command repeats
the tests of `make test`, or of `make check` with --check, and records each run in
bench/results/suites/stress.json. CONTRIBUTING.md shows how many runs have passed since the last
failure. build/stress/runs.json gets each run when it ends. Exit status 1 if anything failed.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import datetime
import functools
import os
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from bench import records

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "build" / "stress"
RECORD = records.SUITES / "stress.json"
PAGE = ROOT / "CONTRIBUTING.md"
BEGIN, END = "<!-- make stress-tests -->\n", "<!-- end -->"
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

#: The tests' commands, by the name of `make`'s target.
OPTIONS = {"test": ["-n", "auto"], "check": ["-n", "auto", "-m", "check"]}


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


@dataclass(frozen=True)
class Run:
    """The outcome of one run, as it is recorded."""

    target: str  # of `make`: test, check
    date: str
    commit: str
    cores: int
    at_once: int
    load: str
    seconds: int
    tests: int
    failed: list[str]


def _failed(case: ElementTree.Element) -> bool:
    return case.find("failure") is not None or case.find("error") is not None


def _name(case: ElementTree.Element) -> str:
    return f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}"


def read(report: Path) -> tuple[int, list[str]]:
    """Reads how many tests ran and which failed, from pytest's report in JUnit's format. A run
    without a report counts as failed."""
    if not report.exists():
        return 0, ["the run itself"]
    cases = list(ElementTree.parse(report).iter("testcase"))
    ran = [case for case in cases if case.find("skipped") is None]
    return len(ran), [_name(case) for case in ran if _failed(case)]


def run(number: int, load: Load, target: str, tests: list[str], jobs: int) -> Run:
    """Runs the tests once under a load."""
    report, log = OUT / f"run-{number}.xml", OUT / f"run-{number}.txt"
    options = ["-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
    options += [*OPTIONS[target], *load.options]
    command = [*load.prefix, sys.executable, "-m", "pytest", *options, *tests]
    begin = datetime.datetime.now(datetime.timezone.utc)
    with loaded(load, busy=2 * CORES if jobs == 1 else 0), log.open("w") as said:
        status = subprocess.run(command, cwd=ROOT, stdout=said, stderr=said).returncode
    took = datetime.datetime.now(datetime.timezone.utc) - begin
    count, failed = read(report)
    if status and not failed:
        failed = [f"the run itself, with status {status}"]
    if not failed:
        log.unlink()
    words = ", ".join(failed) or "no failure"
    print(f"run {number + 1}, {load.name}: {count} tests, {words}", flush=True)
    date, seconds = begin.date().isoformat(), round(took.total_seconds())
    return Run(target, date, _commit(), CORES, jobs, load.name, seconds, count, failed)


@functools.cache
def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    return subprocess.check_output(command, cwd=ROOT, text=True).strip()


def stress(runs: int, target: str, tests: list[str], jobs: int, turn: int = 0) -> Iterator[Run]:
    """Yields each run when the run ends. The load of the first run is LOADS[turn]."""
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    _commit()
    with ThreadPoolExecutor(jobs) as pool:
        loads = [LOADS[(turn + number) % len(LOADS)] for number in range(runs)]
        started = [pool.submit(run, i, load, target, tests, jobs) for i, load in enumerate(loads)]
        try:
            yield from (one.result() for one in as_completed(started))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def recorded(path: Path) -> list[Run]:
    """Returns the recorded runs, oldest first."""
    return [Run(**one) for one in records.load(path)]


def record(runs: list[Run], path: Path) -> None:
    """Records the runs, oldest first."""
    records.save([dataclasses.asdict(one) for one in runs], path)


def _sentence(target: str, runs: list[Run]) -> str:
    red = [number for number, one in enumerate(runs) if one.failed]
    passed = runs[red[-1] + 1 :] if red else runs
    since = "Since its last failure" if red else "In all recorded runs"
    said = f"{since}, `make {target}` has passed {len(passed)} times."
    if passed:
        last = passed[-1]
        said += f" The last run was on {last.date}, of {last.tests:,} tests on {last.cores} cores."
    if red:
        failed = runs[red[-1]]
        said += f" The last failure was on {failed.date}, in {', '.join(failed.failed)}."
    return said + "\n"


def sentences(runs: list[Run]) -> str:
    """Returns the sentences of CONTRIBUTING.md about the recorded runs."""
    by_target = {target: [one for one in runs if one.target == target] for target in OPTIONS}
    return "".join(_sentence(target, some) for target, some in by_target.items() if some)


def held(page: str) -> str:
    """Returns the sentences that the page contains."""
    return page.partition(BEGIN)[2].partition(END)[0]


def say(runs: list[Run], page: Path) -> None:
    """Inserts the sentences into the page."""
    text = page.read_text(encoding="utf-8")
    old, new = BEGIN + held(text) + END, BEGIN + sentences(runs) + END
    page.write_text(text.replace(old, new), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="tests.support.stress", description="repeat the tests under load"
    )
    parser.add_argument("runs", type=int, nargs="?", default=RUNS)
    parser.add_argument("tests", nargs="*", help="files or folders; none: everything")
    parser.add_argument("--jobs", type=int, default=2, help="runs that go on at once")
    parser.add_argument("--check", action="store_true", help="the tests of make check")
    options = parser.parse_args()
    everything, target = not options.tests, "check" if options.check else "test"
    before = recorded(RECORD) if everything and RECORD.exists() else []
    turn = sum(one.target == target for one in before)
    runs: list[Run] = []
    try:
        for one in stress(options.runs, target, options.tests, options.jobs, turn):
            runs.append(one)
            record(runs, OUT / "runs.json")
    finally:  # what has ended counts, also where the rest is given up; the tests read the page
        if everything:
            record([*before, *runs], RECORD)
            say([*before, *runs], PAGE)
    failures = Counter(name for one in runs for name in one.failed)
    for name, times in failures.items():
        print(f"{name}: failed in {times} of {len(runs)} runs, see {OUT.relative_to(ROOT)}")
    print(f"{len(runs)} runs: {(RECORD if everything else OUT / 'runs.json').relative_to(ROOT)}")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
