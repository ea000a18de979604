"""Runs AMD's own tests of the random number library rocRAND on the emulated device, as `make
check-amd` does.

    python -m softgpu.tests.amd.rocrand            # all of it: half an hour
    python -m softgpu.tests.amd.rocrand NAME...    # some programs, such as test_rocrand_basic

Debian's librocrand1-tests contains the tests, in versions for HIP 5.7.1 and 7.2.4. Each program has
a time limit, because some programs generate gigabytes of numbers. A GPU generates these numbers in
a second; the emulated device is much slower. If a program exceeds the limit, the tests that passed
before the limit still count as passed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench import records
from softgpu.tests.amd.gtest import start
from tests.devices.rocm import packages
from tests.devices.rocm.releases import find
from tests.devices.rocm.surroundings import Surroundings, surroundings, without_chatter

RESULTS = records.DEVICE / "rocrand.json"
HIPS = ("5.7.1", "7.2.4")
CHIP = "gfx90a"
PACKAGES = ("librocrand1", "librocrand1-tests")
FOLDER = Path("usr/libexec/rocm/librocrand1-tests")
TIME_LIMIT = 60  # seconds for one program

Outcome = dict  # the outcome of a program: passed, skipped, failed (test to its first words), late


def fetch(here: Surroundings) -> Path:
    """Unpacks a release's tests next to the release, and returns the folder of the tests. Raises
    PackagesMissing."""
    root = packages.cache() / f"rocrand-{here.release.hip}"
    packages.fetch_only(here.release, PACKAGES, root)
    return root


def programs(root: Path) -> list[str]:
    return sorted(path.name for path in (root / FOLDER).glob("test_*"))


def run(here: Surroundings, root: Path, name: str) -> Outcome:
    """Returns the outcomes of one program's tests."""
    ran = start(
        here,
        root / FOLDER / name,
        "--gtest_color=no",
        libraries=root / "usr/lib/x86_64-linux-gnu",
        chip=CHIP,
        time_limit=TIME_LIMIT,
    )
    words = [line for line in without_chatter(ran.stderr).splitlines() if line.strip()]
    result = outcome(ran.stdout, ran.status, (words or [f"exit status {ran.status}"])[0])
    counts = f"{result['passed']} passed, {len(result['failed'])} failed"
    print(f"{here.release.hip} {name}: {counts}{', late' * result['late']}", flush=True)
    return result


def outcome(stdout: str, status: int | None, words: str) -> Outcome:
    """Parses gtest's output. A test counts as failed if the program ended during the test."""
    ended = {test: how for how, test in _ends(stdout)}
    failed = {test: _reason(stdout, test) for test, how in ended.items() if how == "FAILED"}
    begun = re.findall(r"^\[ RUN +\] (\S+)", stdout, re.MULTILINE)
    if status is not None and begun and begun[-1] not in ended:
        failed[begun[-1]] = words[:200]
    elif status and not failed:
        failed["the program"] = words[:200]
    return {
        "passed": sum(how == "OK" for how in ended.values()),
        "skipped": sum(how == "SKIPPED" for how in ended.values()),
        "failed": failed,
        "late": status is None,
    }


def _ends(stdout: str) -> Iterable[tuple[str, str]]:
    ends = r"^\[ +(OK|FAILED|SKIPPED) +\] (\S+?),?(?: .*)?\(\d+ ms\)"
    return re.findall(ends, stdout, re.MULTILINE)


def _reason(stdout: str, test: str) -> str:
    """Returns the first line of a test's first failure message."""
    said = stdout.partition(f"] {test}\n")[2]
    found = re.search(r"Failure\n(.*(?:\n {2}.*)*)", said)
    return " ".join(found[1].split())[:200] if found else "failed"


def load() -> dict[str, dict[str, Outcome]]:
    return records.load(RESULTS)


def section(results: Mapping[str, Mapping[str, Outcome]]) -> str:
    """Returns the section about rocRAND for docs/record/tested.md."""
    lines = [
        "## rocRAND\n",
        f"AMD's own tests of rocRAND (`make check-amd`), on {CHIP}, {TIME_LIMIT} s for each"
        " program: some generate\ngigabytes. If a program was late, the tests that had passed by"
        " then count.\n",
        "| HIP | programs | of them late | tests passed | failed | skipped |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for hip, of in results.items():
        passed, skipped = (sum(o[key] for o in of.values()) for key in ("passed", "skipped"))
        failed = sum(len(o["failed"]) for o in of.values())
        late = sum(o["late"] for o in of.values())
        lines.append(f"| {hip} | {len(of)} | {late} | {passed:,} | {failed} | {skipped} |")
    for hip, of in results.items():
        late = [f"`{name.removeprefix('test_')}`" for name, o in of.items() if o["late"]]
        lines.append(
            f"\nPrograms that exceed the limit with HIP {hip}: {', '.join(late) or 'none'}."
        )
    lines += [f"\nFailed: {failure}" for failure in failures(results)]
    return "\n".join(lines) + "\n"


def failures(results: Mapping[str, Mapping[str, Outcome]]) -> list[str]:
    """Returns each failed test: release, program, name and message."""
    return [
        f"{hip} {program} {test}: {words}"
        for hip, of in results.items()
        for program, o in of.items()
        for test, words in o["failed"].items()
    ]


def main() -> int:
    results = {}
    for hip in HIPS:
        try:
            here = surroundings(find(hip))
            root = fetch(here)
        except packages.PackagesMissing as reason:
            print(f"rocRAND {hip} is skipped: {reason}")
            continue
        names = [name for name in programs(root) if name in sys.argv[1:] or not sys.argv[1:]]
        with ThreadPoolExecutor(2) as pool:
            jobs = {name: pool.submit(run, here, root, name) for name in names}
        results[hip] = {name: job.result() for name, job in jobs.items()}
    if not sys.argv[1:] and set(results) == set(HIPS):
        records.save(results, RESULTS)
    wrong = failures(results)
    print("\n".join(["Failed:", *wrong]) if wrong else "rocRAND: no test failed.")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
