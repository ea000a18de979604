"""Repeats the tests under load, and says which of them failed how often.

    python -m tests.stress [RUNS] [TEST...] [--jobs N]

A test that counts on time fails then. The loads take turns from run to run (LOADS); so many runs go
on at once, each other's load, too. What a run said is kept under build/stress where it failed.
Without tests it repeats those of `make test`, and each run is added to the record,
tests/stress.json, from which CONTRIBUTING.md says how many have passed since the last failure. Runs
of some tests are in build/stress/runs.json only. Exit status 1 if anything failed.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import datetime
import functools
import json
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

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "build" / "stress"
RECORD = ROOT / "tests" / "stress.json"
PAGE = ROOT / "CONTRIBUTING.md"
BEGIN, END = "<!-- make stress-tests -->\n", "<!-- end -->"
RUNS = 20
CORES = os.cpu_count() or 1

#: Neither outlives this process.
SPIN = "import os; parent = os.getppid()\nwhile os.getppid() == parent: pass"
#: Small files that must reach the disk, one after the other, in the folder that its argument names.
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
    """What goes on beside a run of the tests, and how that is started."""

    name: str
    prefix: tuple[str, ...] = ()
    spinning: int = 0  # processes that are always busy
    writing: int = 0  # processes that write files to the disk
    options: tuple[str, ...] = ()  # of pytest's


LOADS = (
    Load("two busy processes a core", spinning=2 * CORES),
    Load("one core, and a busy process on it", ("taskset", "-c", "0"), spinning=CORES),
    Load("the lowest priority, and a busy process a core", ("nice", "-n", "19"), spinning=CORES),
    Load("files written to the disk all the time", writing=2),
    Load("four workers a core", options=("-n", str(4 * CORES))),
)


@contextlib.contextmanager
def loaded(load: Load) -> Iterator[None]:
    """The load goes on as long as this is inside."""
    with tempfile.TemporaryDirectory(dir=OUT) as folder:
        commands = [[sys.executable, "-S", "-c", SPIN]] * load.spinning
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
    """What came of one run, as it goes on record."""

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
    """How many tests ran and which failed, of pytest's report in JUnit's format. A run that did not
    write one has failed as a whole."""
    if not report.exists():
        return 0, ["the run itself"]
    cases = list(ElementTree.parse(report).iter("testcase"))
    ran = [case for case in cases if case.find("skipped") is None]
    return len(ran), [_name(case) for case in ran if _failed(case)]


def run(number: int, load: Load, tests: list[str], jobs: int) -> Run:
    """Runs the tests once under a load."""
    report, log = OUT / f"run-{number}.xml", OUT / f"run-{number}.txt"
    options = ["-q", "-p", "no:cacheprovider", f"--junitxml={report}", *load.options]
    command = [*load.prefix, sys.executable, "-m", "pytest", *options, *tests]
    begin = datetime.datetime.now(datetime.timezone.utc)
    with loaded(load), log.open("w") as said:
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
    return Run(date, _commit(), CORES, jobs, load.name, seconds, count, failed)


@functools.cache
def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    return subprocess.check_output(command, cwd=ROOT, text=True).strip()


def stress(runs: int, tests: list[str], jobs: int, turn: int = 0) -> Iterator[Run]:
    """Runs as they end; `turn` is the number of the first one's load."""
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    _commit()
    with ThreadPoolExecutor(jobs) as pool:
        loads = [LOADS[(turn + number) % len(LOADS)] for number in range(runs)]
        started = [pool.submit(run, number, load, tests, jobs) for number, load in enumerate(loads)]
        try:
            yield from (one.result() for one in as_completed(started))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def recorded(path: Path) -> list[Run]:
    """The runs on record, the oldest first."""
    return [Run(**one) for one in json.loads(path.read_text(encoding="utf-8"))]


def record(runs: list[Run], path: Path) -> None:
    """One run a line, so that runs of several machines can be put together."""
    lines = ",\n".join(json.dumps(dataclasses.asdict(one)) for one in runs)
    path.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def sentence(runs: list[Run]) -> str:
    """What CONTRIBUTING.md says of the runs on record."""
    red = [number for number, one in enumerate(runs) if one.failed]
    passed = runs[red[-1] + 1 :] if red else runs
    said = f"Runs of everything that have passed since the last failure: {len(passed)}"
    if passed:
        last = passed[-1]
        said += f", the last on {last.date}, of {last.tests:,} tests on {last.cores} cores"
    if red:
        failed = runs[red[-1]]
        said += f". The last failure, on {failed.date}: {', '.join(failed.failed)}"
    return said + ".\n"


def held(page: str) -> str:
    """The sentence that stands in the page."""
    return page.partition(BEGIN)[2].partition(END)[0]


def say(runs: list[Run], page: Path) -> None:
    """Puts the sentence into the page."""
    text = page.read_text(encoding="utf-8")
    old, new = BEGIN + held(text) + END, BEGIN + sentence(runs) + END
    page.write_text(text.replace(old, new), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.stress", description="repeat the tests under load")
    parser.add_argument("runs", type=int, nargs="?", default=RUNS)
    parser.add_argument("tests", nargs="*", help="files or folders; none: everything")
    parser.add_argument("--jobs", type=int, default=2, help="runs that go on at once")
    options = parser.parse_args()
    everything = not options.tests
    before = recorded(RECORD) if everything and RECORD.exists() else []
    runs: list[Run] = []
    try:
        for one in stress(options.runs, options.tests, options.jobs, turn=len(before)):
            runs.append(one)
    finally:  # what has ended counts, also where the rest is given up
        out = RECORD if everything else OUT / "runs.json"
        record([*before, *runs], out)
        if everything:
            say([*before, *runs], PAGE)
    failures = Counter(name for one in runs for name in one.failed)
    for name, times in failures.items():
        print(f"{name}: failed in {times} of {len(runs)} runs, see {OUT.relative_to(ROOT)}")
    print(f"{len(runs)} runs: {out.relative_to(ROOT)}")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
