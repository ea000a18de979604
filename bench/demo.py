"""The demonstration: the forum's program before and after, on AMD's own HIP without a GPU.

Lowers ``programs/forum.mlir`` (1000 launches of an empty kernel) with MLIR 22, 19 and 15 and runs
each with a plain runtime, with mgpu_rt linked in its place, and with mgpu_rt preloaded over the
program that was linked against the plain one. Prints for each the table that the forum's report
has, and one line of result. Exit status 1 if anything failed or mgpu_rt did not keep its promise.

The times are of an emulated device: they compare the two sides with each other, nothing else.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import bench
from mgpu_rt.cli import softgpu
from mgpu_rt.lowering import lower, objects, pipelines, toolchain

LAUNCHES = 1000
# What one launch of mgpu_rt takes is lost in the noise of HIP's start if only 1000 are timed.
MANY_LAUNCHES = 20_000
STOCK = bench.ROOT / "build" / "stock" / "libmlir_rocm_runtime.so"
OURS = bench.ROOT / "build" / "lib" / "libmlir_rocm_runtime.so"
PROGRAMS = bench.ROOT / "build" / "demo"
# A run takes two seconds at most; one that hangs must not hang the demonstration.
TIME_LIMIT = 60

_ROW = re.compile(r"^ *\d+\.\d+ +\d+\.\d+ +\d+\.\d+ +(\d+) (\w+)$", re.MULTILINE)


class Failed(Exception):
    """The demonstration cannot go on, or shows that something is wrong."""


@dataclass(frozen=True)
class Side:
    """One way of running the program. ``command`` stands before the program's path."""

    name: str
    library: Path
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Outcome:
    """What a side took: wall time of the whole process, and of one launch after the first."""

    seconds: float
    launch_us: float
    program_table: str
    driver: Mapping[str, int]

    @property
    def driver_calls(self) -> int:
        return sum(self.driver.values())


BEFORE = Side("plain runtime", STOCK)
# The same driver calls in the same order, by the library that can count them.
COUNTED = Side("plain runtime", OURS, environment={"MGPU_RT_CACHE": "off"})
IN_PLACE = Side("mgpu_rt in its place", OURS)
PRELOADED = Side(
    "mgpu_rt preloaded",
    STOCK,
    command=(sys.executable, "-m", "mgpu_rt", "run", "--device", "softgpu", "--"),
)


def main() -> int:
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # tables keep up with progress, in a pipe too
    try:
        demonstrate()
    except (
        Failed,
        toolchain.ToolchainMissing,
        toolchain.LoweringFailed,
        softgpu.SoftGpuUnavailable,
    ) as problem:
        print(f"demo: {problem}", file=sys.stderr)
        return 1
    return 0


def demonstrate() -> None:
    for library in (STOCK, OURS):
        if not library.exists():
            raise Failed(f"{library} is missing: run `make demo`, which builds it")
    print(f"{LAUNCHES} launches of an empty kernel on AMD's HIP, on an emulated device\n")
    results = [compare(llvm) for llvm in toolchain.RELEASES]
    print("\n".join(results))


def compare(llvm: int) -> str:
    """Runs all sides of one LLVM release, prints their tables, returns the line of result."""
    chip = pipelines.FORUM_CHIP if llvm == 15 else pipelines.DEFAULT_CHIP
    # What the caller set for mgpu_rt is for other programs; only the choice of a HIP holds here.
    base = {k: v for k, v in os.environ.items() if k == "MGPU_RT_HIP" or k[:8] != "MGPU_RT_"}
    environment = softgpu.environment({**base, "MGPU_RT_SOFTGPU": chip})

    before = measure(llvm, BEFORE, COUNTED, LAUNCHES, environment)
    in_place = measure(llvm, IN_PLACE, IN_PLACE, MANY_LAUNCHES, environment)
    preloaded = measure(llvm, PRELOADED, PRELOADED, MANY_LAUNCHES, environment)

    for side, outcome in ((BEFORE, before), (IN_PLACE, in_place), (PRELOADED, preloaded)):
        print(f"\nLLVM {llvm}, {chip}, {side.name}: {outcome.seconds:.3f} s")
        print(outcome.program_table)
    print()
    check(llvm, in_place)
    check(llvm, preloaded)
    return (
        f"LLVM {llvm}: {before.seconds:.3f} s before, {in_place.seconds:.3f} s after"
        f" ({preloaded.seconds:.3f} s preloaded);"
        f" {before.launch_us:,.0f} µs a launch before, {in_place.launch_us:,.1f} µs after;"
        f" {before.driver_calls:,} driver calls before, {in_place.driver_calls:,} after"
    )


def measure(
    llvm: int, timed: Side, counted: Side, many: int, environment: Mapping[str, str]
) -> Outcome:
    """Times one side without statistics, then runs one that counts.

    The time of a launch by itself is the difference between a run of `many` and a run of one: HIP's
    own start takes 0.2 s.
    """
    announce(f"LLVM {llvm}, {timed.name}")
    seconds, _ = execute(timed, build(llvm, timed.library, LAUNCHES), environment)
    one_seconds, _ = execute(timed, build(llvm, timed.library, 1), environment)
    many_seconds = seconds
    if many != LAUNCHES:
        many_seconds, _ = execute(timed, build(llvm, timed.library, many), environment)
    _, report = execute(
        counted, build(llvm, counted.library, LAUNCHES), {**environment, "MGPU_RT_STATS": "1"}
    )
    program_table, driver_table = split_tables(report)
    announce(f" {seconds:.3f} s\n")
    return Outcome(
        seconds,
        (many_seconds - one_seconds) / (many - 1) * 1e6,
        program_table,
        {name: int(calls) for calls, name in _ROW.findall(driver_table)},
    )


def build(llvm: int, library: Path, launches: int) -> Path:
    source = bench.PROGRAMS / "forum.mlir"
    compiled = lower.lower(source, llvm=llvm, iterations=launches)
    name = f"forum-{llvm}-{library.parent.name}-{launches}"
    out = PROGRAMS / name
    return objects.link([compiled], libraries=[library], rpath=[library.parent], out=out)


def execute(side: Side, program: Path, environment: Mapping[str, str]) -> tuple[float, str]:
    """Wall time and standard error of one run. Raises Failed if it did not go well."""
    command = [*side.command, str(program)]
    start = time.perf_counter()
    try:
        done = subprocess.run(
            command,
            env={**environment, **(side.environment or {})},
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT,
        )
    except subprocess.TimeoutExpired as expired:
        raise Failed(f"{words(command)}: not done after {TIME_LIMIT} s") from expired
    seconds = time.perf_counter() - start
    # MLIR's main returns nothing, so only death by a signal says something.
    if done.returncode < 0:
        raise Failed(f"{words(command)}: ended with status {done.returncode}\n{done.stderr}")
    if "failed with" in done.stderr:
        raise Failed(f"{words(command)}: a call failed\n{done.stderr}")
    return seconds, done.stderr


def split_tables(report: str) -> tuple[str, str]:
    """The two tables of MGPU_RT_STATS=1: the program's calls, the driver's calls."""
    parts = re.split(r"^mgpu_rt: calls of the (?:program|driver)\n", report, flags=re.MULTILINE)
    if len(parts) != 3:
        raise Failed(f"no statistics came from the library, but:\n{report}")
    return parts[1].rstrip(), parts[2].rstrip()


def check(llvm: int, outcome: Outcome) -> None:
    """Holds what was counted against what is promised."""
    bounds = {
        "hipModuleLoadData": (0, 1),
        "hipModuleGetFunction": (0, 1),
        "hipStreamCreate": (0, 1),
        # Not in the loop; one at the end gives the shared stream back.
        "hipStreamDestroy": (0, 1),
        "hipModuleLaunchKernel": (LAUNCHES, LAUNCHES),
        "hipStreamSynchronize": (LAUNCHES, LAUNCHES),
    }
    for name, (least, most) in bounds.items():
        calls = outcome.driver.get(name, 0)
        if not least <= calls <= most:
            raise Failed(f"LLVM {llvm}: {calls} calls of {name}, not {least} to {most}")


def announce(text: str) -> None:
    """Progress, on standard error: the tables on standard output stay clean."""
    print(text, end="", file=sys.stderr, flush=True)


def words(command: Sequence[str]) -> str:
    return " ".join(command)


if __name__ == "__main__":
    sys.exit(main())
