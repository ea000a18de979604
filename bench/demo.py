"""The demonstration: the forum's program without and with mgpu_rt, on AMD's own HIP without a GPU.

Frames `mgpu-rt compare` of ``programs/forum.mlir`` (launches of an empty kernel), lowered by MLIR
22, 19 and 15. Ends with status 1 if a run failed or mgpu_rt made more calls than promised.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from typing import NamedTuple

import bench
from bench.show.table import number
from mgpu_rt._lowering import lower, object_files, pipelines, toolchain
from mgpu_rt._text import columns

LAUNCHES = 1000
OURS = bench.ROOT / "build" / "lib" / "libmlir_rocm_runtime.so"
PROGRAMS = bench.ROOT / "build" / "demo"
# A comparison takes at most ten seconds; the limit ends a run that hangs.
TIME_LIMIT = 300

#: The least and the most calls that mgpu_rt makes. The iterations share a stream, which is
#: destroyed at most once, after the loop.
PROMISED = {
    "hipModuleLoadData": (0, 1),
    "hipModuleGetFunction": (0, 1),
    "hipStreamCreate": (0, 1),
    "hipStreamDestroy": (0, 1),
    "hipModuleLaunchKernel": (LAUNCHES, LAUNCHES),
    "hipStreamSynchronize": (LAUNCHES, LAUNCHES),
}

#: A row of a table: the function or "total", calls before and after, milliseconds before and after.
_ROW = re.compile(r"^(\w+) +(\d+|–) +(\d+|–) +([\d.]+|–) +([\d.]+|–)", re.MULTILINE)


class Failed(Exception):
    """Raised when the demonstration cannot continue, or has found a fault."""


class Comparison(NamedTuple):
    """The text that `mgpu-rt compare` printed. `ms` are the program's milliseconds before and
    after, and `driver` holds each driver function's calls before and after."""

    text: str
    ms: tuple[float, float]
    driver: Mapping[str, tuple[int, int]]


def main() -> int:
    try:
        print(f"{LAUNCHES:,} launches of an empty kernel, on AMD's HIP and an emulated device\n")
        compared = {}
        for llvm in toolchain.TESTED:
            compared[llvm] = compare(llvm)
            print(f"LLVM {llvm}\n\n{compared[llvm].text}", flush=True)
            check(llvm, compared[llvm].driver)
        print(summary(compared))
    except (Failed, toolchain.ToolchainMissing, toolchain.LoweringFailed) as reason:
        print(f"demo: {reason}", file=sys.stderr)
        return 1
    return 0


def compare(llvm: int) -> Comparison:
    """Runs the program of one LLVM release by `mgpu-rt compare`."""
    if not OURS.exists():
        raise Failed(f"{OURS} is missing: run `make demo`, which builds it")
    chip = pipelines.FORUM_CHIP if llvm == 15 else pipelines.DEFAULT_CHIP
    compiled = lower.lower(bench.PROGRAMS / "forum.mlir", llvm=llvm, iterations=LAUNCHES)
    out = PROGRAMS / f"forum-{llvm}"
    program = object_files.link([compiled], libraries=[OURS], rpath=[OURS.parent], out=out)
    # The caller's settings of mgpu_rt are for other programs; only the caller's choice of a HIP
    # applies here.
    base = {k: v for k, v in os.environ.items() if k == "MGPU_RT_HIP" or k[:8] != "MGPU_RT_"}
    command = [sys.executable, "-m", "mgpu_rt", "compare", "--device", "softgpu", "--", program]
    pipes = {"capture_output": True, "text": True, "timeout": TIME_LIMIT}
    try:
        done = subprocess.run(command, env={**base, "MGPU_RT_SOFTGPU": chip}, **pipes)
    except subprocess.TimeoutExpired as expired:
        raise Failed(f"LLVM {llvm}: not done after {TIME_LIMIT} s") from expired
    if done.returncode != 0:
        raise Failed(f"LLVM {llvm}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return parsed(done.stdout)


def parsed(text: str) -> Comparison:
    """Reads the tables of `mgpu-rt compare`; the first table has the program's calls."""
    rows = [tuple(cell.replace("–", "0") for cell in row) for row in _ROW.findall(text)]
    totals = [row for row in rows if row[0] == "total"]
    if not totals:
        raise Failed(f"mgpu-rt compare printed no totals, but:\n{text}")
    driver = {name: (int(before), int(after)) for name, before, after, *_ in rows}
    return Comparison(text, (float(totals[0][3]), float(totals[0][4])), driver)


def check(llvm: int, driver: Mapping[str, tuple[int, int]]) -> None:
    """Raises Failed if a function was called more or less often than mgpu_rt promises."""
    for name, (least, most) in PROMISED.items():
        calls = driver.get(name, (0, 0))[1]
        if not least <= calls <= most:
            raise Failed(f"LLVM {llvm}: {calls} calls of {name}, not {least} to {most}")


def summary(compared: Mapping[int, Comparison]) -> str:
    """Returns a table with a row for each release: the time of a launch, and the numbers of streams
    and modules that LAUNCHES launches create."""
    rows = [("a launch, all its calls", "before", "after", "streams created", "modules loaded")]
    for llvm, found in compared.items():
        times = (f"{number(1000 * ms / LAUNCHES)} µs" for ms in found.ms)
        changes = (
            "{:,}, then {:,}".format(*found.driver.get(name, (0, 0)))
            for name in ("hipStreamCreate", "hipModuleLoadData")
        )
        rows.append((f"LLVM {llvm}", *times, *changes))
    return "\n".join(columns(rows))


if __name__ == "__main__":
    sys.exit(main())
