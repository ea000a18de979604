"""Runs rocrtst, AMD's own tests of ROCr 7.2.4, on the emulated device, as `make check-amd` does.

    python -m softgpu.tests.amd.rocrtst            # all of it: ten minutes
    python -m softgpu.tests.amd.rocrtst NAME...    # some, by gtest's names

Debian's libhsa-runtime64-tests contains rocrtst. rocrtst calls AMD's management library only for
clocks and fans. A stand-in for the management library refuses every call.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench import records
from softgpu.tests.amd import gtest
from tests.devices.rocm import packages
from tests.devices.rocm.releases import find
from tests.devices.rocm.surroundings import Surroundings, surroundings, without_chatter

RESULTS = records.DEVICE / "rocrtst.json"
HIP = "7.2.4"
CHIP = "gfx90a"
PACKAGES = ("libhsa-runtime64-tests", "libhwloc15", "libudev1", "libcap2")
FOLDER = Path("usr/libexec/rocm/libhsa-runtime64-tests")
SMI = "libamd_smi.so.26"
TIME_LIMIT = 120  # seconds for one test

#: Tests that do not pass, each with the cause.
EXPECTED = {
    "rocrtstFunc.GroupMemoryAllocationTest": "AMD's kernel writes past its workgroup memory: "
    "hardware drops such a write, the emulated device calls it a fault",
    "rocrtstFunc.MemoryAllocateContiguousTest": "wants dmabuf, which is not emulated",
    "rocrtstFunc.IPC": "wants memory shared between processes, which is not emulated",
    "rocrtstPerf.Memory_Async_Copy": "looks for the device on the machine's PCI bus",
    "rocrtstPerf.Memory_Async_Copy_On_Engine": "looks for the device on the machine's PCI bus",
}

#: Tests that may exceed the time limit, each with the cause.
SLOW = {
    "rocrtstFunc.Max_Reference_Count": "counts calls to two billion",
    "rocrtstFunc.Memory_Alignment_Test": "allocates whatever a device has, by every alignment",
    "rocrtstStress.Queue_CAS_Write_Index_ConcurrentTest": "four threads take turns four million "
    "times without yielding, which two cores are too few for",
}

Outcome = tuple[str, str]  # passed, failed or late; the last words of its output


def fetch(here: Surroundings) -> Path:
    """Unpacks the tests next to the release, and returns the folder of the tests. Raises
    PackagesMissing."""
    root = packages.cache() / "rocrtst"
    packages.fetch_only(here.release, PACKAGES, root)
    _stand_in(root)
    return root


def _stand_in(root: Path) -> None:
    """Builds a management library that exports every function that rocrtst64 needs, and refuses
    every call."""
    library = root / "usr/lib/x86_64-linux-gnu" / SMI
    program = root / FOLDER / "rocrtst64"
    listing = subprocess.run(
        ["nm", "-D", "--undefined-only", program], capture_output=True, text=True, check=True
    ).stdout
    names = sorted(set(re.findall(r"\bamdsmi_\w+", listing)))
    source = "".join(f"int {name}(void) {{ return 2; }}\n" for name in names)
    command = ["cc", "-shared", "-fPIC", "-x", "c", "-", f"-Wl,-soname,{SMI}", "-o", library]
    subprocess.run(command, input=source, text=True, check=True)


def start(here: Surroundings, root: Path, *arguments: str) -> gtest.Ran:
    """Starts one rocrtst64 process in the folder that contains rocrtst64's kernels."""
    return gtest.start(
        here,
        root / FOLDER / "rocrtst64",
        *arguments,
        libraries=root / "usr/lib/x86_64-linux-gnu",
        chip=CHIP,
        time_limit=TIME_LIMIT,
    )


def tests(here: Surroundings, root: Path) -> list[str]:
    """Returns the names of all tests that AMD has not disabled."""
    names, suite = [], ""
    for line in start(here, root, "--gtest_list_tests").stdout.splitlines():
        if re.fullmatch(r"\w+\.", line):
            suite = line
        elif suite and re.fullmatch(r"  \w+", line) and "DISABLED_" not in line:
            names.append(suite + line.strip())
    return names


def run(here: Surroundings, root: Path, name: str) -> Outcome:
    done = start(here, root, f"--gtest_filter={name}")
    if done.status is None:
        return "late", f"more than {TIME_LIMIT} s"
    passed = done.status == 0 and "[  PASSED  ] 1 test" in done.stdout
    words = [line for line in without_chatter(done.stderr).splitlines() if line.strip()]
    outcome = "passed" if passed else "failed"
    print(f"{outcome}: {name}", flush=True)
    return outcome, "" if passed else (words or [f"exit status {done.status}"])[0][:200]


def load() -> dict[str, Outcome]:
    return {name: tuple(o) for name, o in records.load(RESULTS).items()}


def section(outcomes: Mapping[str, Outcome]) -> str:
    """Returns the section about ROCr for docs/record/tested.md."""
    passed = sum(outcome == "passed" for outcome, _ in outcomes.values())
    lines = [f"## rocrtst {HIP}\n", f"AMD's own tests of ROCr (`make check-amd`), on {CHIP}:"]
    lines += [
        f"{passed} of {len(outcomes)} pass. The other tests do not pass:\n",
        "| test | why |",
        "|---|---|",
    ]
    lines += [f"| {name} | {words_of(name, outcome, words)} |"
              for name, (outcome, words) in outcomes.items() if outcome != "passed"]  # fmt: skip
    return "\n".join(lines) + "\n"


def words_of(name: str, outcome: str, words: str) -> str:
    if outcome == "late":
        return f"{words}: {SLOW.get(name, 'not known why')}"
    return EXPECTED.get(name, words)


def unexpected(outcomes: Mapping[str, Outcome]) -> list[str]:
    """Returns the tests with an unexpected outcome: failures without an expected cause, and passes
    where a failure is expected."""
    return [
        f"{name}: {outcome} {words}"
        for name, (outcome, words) in outcomes.items()
        if (outcome == "passed") == (name in EXPECTED) and not (outcome == "late" and name in SLOW)
    ]


def main() -> int:
    if not shutil.which("nm"):
        print("rocrtst is skipped: nm is missing (apt-get install binutils)")
        return 0
    try:
        here = surroundings(find(HIP))
        root = fetch(here)
    except packages.PackagesMissing as reason:
        print(f"rocrtst is skipped: {reason}")
        return 0
    names = sys.argv[1:] or tests(here, root)
    with ThreadPoolExecutor(2) as pool:
        outcomes = dict(
            zip(names, pool.map(lambda name: run(here, root, name), names), strict=True)
        )
    if not sys.argv[1:]:
        records.save(outcomes, RESULTS)
    wrong = unexpected(outcomes)
    passed = sum(outcome == "passed" for outcome, _ in outcomes.values())
    print(f"rocrtst {HIP}, {CHIP}: {passed} of {len(outcomes)} passed")
    print("\n".join(["Not as expected:", *wrong]) if wrong else "The rest is as expected.")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
