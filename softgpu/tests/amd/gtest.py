"""Runs AMD's own test programs, which use gtest, on the emulated device."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from bench import records
from tests.devices.rocm import packages
from tests.devices.rocm.releases import find
from tests.devices.rocm.surroundings import Surroundings, surroundings, without_chatter

CHIP = "gfx90a"
LIBRARIES = Path("usr/lib/x86_64-linux-gnu")
Outcome = dict  # of one process: passed, skipped, failed (test to its first words), late


@dataclass(frozen=True)
class Suite:
    """The tests of a library of AMD's, from Debian's packages for some HIP releases."""

    name: str
    library: str
    hips: tuple[str, ...]
    packages: tuple[str, ...]
    time_limit: int  # seconds for each process
    #: Returns the processes of a release, whose packages lie in the folder: names and commands.
    processes: Callable[[Suite, Surroundings, Path], Mapping[str, list[object]]]
    expected: Mapping[str, str] = field(default_factory=dict)  # processes that fail, and the cause
    slow: Mapping[str, str] | None = None  # if given, no other process may exceed the limit

    @property
    def folder(self) -> Path:
        return Path("usr/libexec/rocm") / self.packages[0]

    def load(self) -> dict[str, Outcome]:
        """Returns the recorded totals of each HIP release."""
        return records.load(records.DEVICE / f"{self.name}.json")

    def unexpected(self, totals: Outcome) -> list[str]:
        """Describes the processes that failed, passed or were late without an expected cause."""
        failed = {name: words for name, words in totals["failed"].items()
                  if name not in self.expected}  # fmt: skip
        passed = set(self.expected) - set(totals["failed"])
        late = [] if self.slow is None else set(totals["late"]) - set(self.slow)
        return [
            *(f"{name}: {words}" for name, words in failed.items()),
            *(f"{name}: passed" for name in sorted(passed)),
            *(f"{name}: late" for name in sorted(late)),
        ]

    def section(self, results: Mapping[str, Outcome]) -> str:
        """Returns the section about the suite for docs/record/tested.md."""
        lines = [
            f"## AMD's tests of {self.library}\n",
            f"`make check-amd` runs them on {CHIP}, {self.time_limit} s for each process."
            + " The tests that\nhad passed by then count." * (self.slow is None)
            + "\n",
            "| HIP | processes | of them late | tests passed | failed | skipped |",
            "|---|---:|---:|---:|---:|---:|",
        ]
        reasons = ["\n| failed or late | why |", "|---|---|"]
        for hip, of in results.items():
            counts = len(of["late"]), of["passed"], len(of["failed"]), of["skipped"]
            cells = " | ".join(f"{count:,}" for count in (of["processes"], *counts))
            lines.append(f"| {hip} | {cells} |")
            causes = {name: self.expected.get(name, said) for name, said in of["failed"].items()}
            if self.slow is None:
                late = ", ".join(f"`{name.removeprefix('test_')}`" for name in of["late"])
                causes[f"HIP {hip}: {late}"] = "late: generate gigabytes"
            else:
                causes |= {name: f"late: {self.slow.get(name)}" for name in of["late"]}
            reasons += [f"| {name} | {cause} |" for name, cause in causes.items()]
        return "\n".join([*lines, *reasons]) + "\n"


def _environment(here: Surroundings) -> dict[str, str]:
    env = here.environment({**os.environ, "MGPU_RT_SOFTGPU": CHIP})
    return {name: text for name, text in env.items() if name != "LD_LIBRARY_PATH"}


def start(suite: Suite, here: Surroundings, root: Path, command: list[object]) -> Outcome:
    """Runs a process in the folder of its tests, and returns the outcome. Child processes of the
    process end with the process."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            [*here.prefix(str(root / LIBRARIES)), *map(str, command)],
            cwd=root / suite.folder,
            env=_environment(here),
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        status = None
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                status = process.wait(suite.time_limit)
        finally:  # a failed test leaves its own children behind
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        words = [w for w in without_chatter(_text(err)).splitlines() if w.strip()]
        return outcome(_text(out), status, (words or [f"exit status {status}"])[0])


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def listed(suite: Suite, here: Surroundings, root: Path, program: str) -> list[str]:
    """Returns the names of all tests of a program that AMD has not disabled."""
    command = [*here.prefix(str(root / LIBRARIES)), f"./{program}", "--gtest_list_tests"]
    where, env = root / suite.folder, _environment(here)
    done = subprocess.run(command, cwd=where, env=env, capture_output=True, text=True)
    names, group = [], ""
    for line in done.stdout.splitlines():
        if re.fullmatch(r"\w+\.", line):
            group = line
        elif group and re.fullmatch(r"  \w+", line) and "DISABLED_" not in line:
            names.append(group + line.strip())
    return names


def outcome(stdout: str, status: int | None, words: str) -> Outcome:
    """Parses gtest's output. A test counts as failed if the program ended during the test."""
    ends = r"^\[ +(OK|FAILED|SKIPPED) +\] (\S+?),?(?: .*)?\(\d+ ms\)"
    ended = {test: how for how, test in re.findall(ends, stdout, re.MULTILINE)}
    failed = {test: _reason(stdout, test) for test, how in ended.items() if how == "FAILED"}
    begun = re.findall(r"^\[ RUN +\] (\S+)", stdout, re.MULTILINE)
    if status is not None and begun and begun[-1] not in ended:
        failed[begun[-1]] = words[:200]
    elif status is not None and (status or not begun) and not failed:
        failed["the program"] = words[:200]
    return {
        "passed": sum(how == "OK" for how in ended.values()),
        "skipped": sum(how == "SKIPPED" for how in ended.values()),
        "failed": failed,
        "late": status is None,
    }


def _reason(stdout: str, test: str) -> str:
    """Returns the first line of a test's first failure message."""
    said = stdout.partition(f"] {test}\n")[2]
    found = re.search(r"Failure\n(.*(?:\n {2}.*)*)", said)
    return " ".join(found[1].split())[:200] if found else "failed"


def totals(outcomes: Mapping[str, Outcome]) -> Outcome:
    """Returns the sums over all processes, and the processes that failed or were late."""
    return {
        "processes": len(outcomes),
        **{key: sum(o[key] for o in outcomes.values()) for key in ("passed", "skipped")},
        "failed": {
            name: "; ".join(words if test == name else f"{test}: {words}"
                            for test, words in o["failed"].items())
            for name, o in outcomes.items() if o["failed"]
        },
        "late": [name for name, o in outcomes.items() if o["late"]],
    }  # fmt: skip


def main(suite: Suite) -> int:
    results, wrong, chosen = {}, [], sys.argv[1:]
    for hip in suite.hips:
        root = packages.cache() / f"{suite.name}-{hip}"
        try:
            here = surroundings(find(hip))
            packages.fetch_only(here.release, suite.packages, root)
        except packages.PackagesMissing as reason:
            print(f"{suite.library} {hip} is skipped: {reason}")
            continue
        commands = suite.processes(suite, here, root)
        with ThreadPoolExecutor(2) as pool:
            jobs = {
                name: pool.submit(start, suite, here, root, command)
                for name, command in commands.items()
                if name in (chosen or commands)
            }
        outcomes = {name: job.result() for name, job in jobs.items()}
        results[hip] = totals(outcomes)
        print(f"{suite.library} {hip}: {results[hip]}")
        found = suite.unexpected(results[hip])
        wrong += [f"{hip} {text}" for text in found if text.split(": ")[0] in outcomes]
    if not chosen and set(results) == set(suite.hips):
        records.save(results, records.DEVICE / f"{suite.name}.json")
    print("\n".join(["Not as expected:", *wrong]) if wrong else "All is as expected.")
    return int(bool(wrong))
