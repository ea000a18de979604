"""Repeats the tests under load, and says which of them failed how often.

    python -m tests.stress [RUNS] [TEST...] [--jobs N]

A test that counts on time fails then. The loads take turns from run to run (LOADS); so many runs go
on at once, each other's load, too. What a run said is kept under build/stress where it failed.
Without tests it repeats those of `make test`, and its result goes on record: tests/stress.json, and
CONTRIBUTING.md. The result for some tests is in build/stress/result.json only. Exit status 1 if
anything failed.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
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
    """What came of one run."""

    tests: int
    failed: tuple[str, ...]


def _failed(case: ElementTree.Element) -> bool:
    return case.find("failure") is not None or case.find("error") is not None


def _name(case: ElementTree.Element) -> str:
    return f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}"


def read(report: Path) -> Run:
    """Of pytest's report in JUnit's format; a run that did not write one has failed as a whole."""
    if not report.exists():
        return Run(0, ("the run itself",))
    cases = list(ElementTree.parse(report).iter("testcase"))
    ran = [case for case in cases if case.find("skipped") is None]
    return Run(len(ran), tuple(_name(case) for case in ran if _failed(case)))


def run(number: int, tests: list[str]) -> Run:
    """Runs the tests once, under the load whose turn it is."""
    load = LOADS[number % len(LOADS)]
    report, log = OUT / f"run-{number}.xml", OUT / f"run-{number}.txt"
    options = ["-q", "-p", "no:cacheprovider", f"--junitxml={report}", *load.options]
    command = [*load.prefix, sys.executable, "-m", "pytest", *options, *tests]
    with loaded(load), log.open("w") as said:
        status = subprocess.run(command, cwd=ROOT, stdout=said, stderr=said).returncode
    result = read(report)
    if status and not result.failed:
        result = Run(result.tests, (f"the run itself, with status {status}",))
    if not result.failed:
        log.unlink()
    words = ", ".join(result.failed) or "no failure"
    print(f"run {number + 1}, {load.name}: {result.tests} tests, {words}", flush=True)
    return result


def stress(runs: int, tests: list[str], jobs: int) -> dict:
    """The result, as it goes on record."""
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    begin = datetime.datetime.now(datetime.timezone.utc)
    commit = subprocess.check_output(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, text=True
    )
    with ThreadPoolExecutor(jobs) as pool:
        results = list(pool.map(lambda number: run(number, tests), range(runs)))
    took = datetime.datetime.now(datetime.timezone.utc) - begin
    return {
        "date": begin.date().isoformat(),
        "commit": commit.strip(),
        "cores": CORES,
        "seconds": round(took.total_seconds()),
        "runs": runs,
        "at once": jobs,
        "tests": max(result.tests for result in results),
        "only": tests,
        "loads": [load.name for load in LOADS[:runs]],
        "failures": dict(Counter(name for result in results for name in result.failed)),
    }


def sentence(result: dict) -> str:
    """What CONTRIBUTING.md says of a result."""
    failures = [f"{name} in {times} runs" for name, times in result["failures"].items()]
    return (
        f"Last on {result['date']}: {result['runs']} runs of {result['tests']:,} tests on "
        f"{result['cores']} cores, {result['at once']} at once, in "
        f"{round(result['seconds'] / 60)} minutes; failed: {', '.join(failures) or 'none'}.\n"
    )


def held(page: str) -> str:
    """The sentence that stands in the page."""
    return page.partition(BEGIN)[2].partition(END)[0]


def record(result: dict) -> Path:
    RECORD.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    old, new = BEGIN + held(page) + END, BEGIN + sentence(result) + END
    PAGE.write_text(page.replace(old, new), encoding="utf-8")
    return RECORD


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.stress", description="repeat the tests under load")
    parser.add_argument("runs", type=int, nargs="?", default=RUNS)
    parser.add_argument("tests", nargs="*", help="files or folders; none: everything")
    parser.add_argument("--jobs", type=int, default=2, help="runs that go on at once")
    options = parser.parse_args()
    result = stress(options.runs, options.tests, options.jobs)
    (OUT / "result.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    out = OUT / "result.json" if options.tests else record(result)
    for name, times in result["failures"].items():
        print(f"{name}: failed in {times} of {options.runs} runs, see {OUT.relative_to(ROOT)}")
    print(f"{options.runs} runs of {result['tests']} tests: {out.relative_to(ROOT)}")
    return bool(result["failures"])


if __name__ == "__main__":
    sys.exit(main())
