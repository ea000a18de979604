"""The demonstration: the forum's program without and with mgpu_rt, on AMD's own HIP without a GPU.

Lowers ``programs/forum.mlir`` (launches of an empty kernel) with MLIR 22, 19 and 15. Each program
runs in three configurations: linked with a plain runtime, linked with mgpu_rt, and with mgpu_rt
preloaded. Prints a table for each program, in the format of the forum's report, and finally a
summary of all programs. Ends with status 1 if a run failed or mgpu_rt made more calls than
promised.

The times are measured on an emulated device, so they only compare the sides with each other.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import bench
from bench.show.estimate import Estimate, each
from mgpu_rt._cli import softgpu
from mgpu_rt._lowering import lower, object_files, pipelines, toolchain
from mgpu_rt._text import columns

LAUNCHES = 1000  # number of counted launches
REPETITIONS = 3  # number of timed runs of each kind
STOCK = bench.ROOT / "build" / "stock" / "libmlir_rocm_runtime.so"
OURS = bench.ROOT / "build" / "lib" / "libmlir_rocm_runtime.so"
PROGRAMS = bench.ROOT / "build" / "demo"
# A run takes at most two seconds; the limit ends a run that hangs.
TIME_LIMIT = 300

INTRODUCTION = f"""\
{LAUNCHES:,} launches of an empty kernel, on AMD's HIP and an emulated device

plain runtime: asks HIP at each call what LLVM's own library asks; so does MGPU_RT_CACHE=off
mgpu_rt: the program linked with mgpu_rt in its place
preloaded: the program linked with the plain runtime, run by mgpu-rt run
"""

EXPLANATION = (
    f"other runs: medians of {REPETITIONS}, without statistics, HIP's start and the first launch",
    f"each table above: one run of {LAUNCHES:,} launches with statistics and the first launch;",
    "on a busy machine its times vary by several times",
)

_ROW = re.compile(r"^ *\d+\.\d+ +\d+\.\d+ +\d+\.\d+ +(\d+) (\w+)$", re.MULTILINE)


class Failed(Exception):
    """Raised when the demonstration cannot continue, or has found a fault."""


@dataclass(frozen=True)
class Side:
    """A configuration in which the program runs. On the command line ``command`` precedes the
    program's path.

    ``many`` is the number of launches in a timed run. The run must take clearly longer than HIP's
    own start of 0.2 s.
    """

    name: str
    library: Path
    many: int
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Counts:
    """The call counts of one configuration: the library's table of the program's calls, and the
    number of calls of each driver function."""

    table: str
    driver: Mapping[str, int]


@dataclass(frozen=True)
class Outcome:
    """The results of one configuration: the time of a launch, and the call counts."""

    launch: Estimate
    counts: Counts

    def calls(self, function: str) -> int:
        return self.counts.driver.get(function, 0)


PLAIN = Side("plain runtime", STOCK, many=300)
#: Makes the same driver calls as PLAIN in the same order, but with this library, because the plain
#: runtime counts no calls.
PLAIN_COUNTED = Side("plain runtime", OURS, many=0, environment={"MGPU_RT_CACHE": "off"})
IN_PLACE = Side("mgpu_rt", OURS, many=20_000)
PRELOADED = Side(
    "preloaded",
    STOCK,
    many=20_000,
    command=(sys.executable, "-m", "mgpu_rt", "run", "--device", "softgpu", "--"),
)
SIDES = (PLAIN, IN_PLACE, PRELOADED)


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
    ) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    return 0


def demonstrate() -> None:
    for library in (STOCK, OURS):
        if not library.exists():
            raise Failed(f"{library} is missing: run `make demo`, which builds it")
    print(INTRODUCTION)
    print(summary({llvm: compare(llvm) for llvm in toolchain.TESTED}))


def compare(llvm: int) -> dict[Side, Outcome]:
    """Runs the program of one LLVM release in all configurations, prints the tables, and checks the
    counts."""
    chip = pipelines.FORUM_CHIP if llvm == 15 else pipelines.DEFAULT_CHIP
    # The caller's settings of mgpu_rt are for other programs; only the caller's choice of a HIP
    # applies here.
    base = {k: v for k, v in os.environ.items() if k == "MGPU_RT_HIP" or k[:8] != "MGPU_RT_"}
    environment = softgpu.environment({**base, "MGPU_RT_SOFTGPU": chip})

    outcomes = {}
    for side in SIDES:
        announce(f"LLVM {llvm}, {side.name} ...")
        counts = count(llvm, PLAIN_COUNTED if side is PLAIN else side, environment)
        outcomes[side] = Outcome(time_launch(llvm, side, environment), counts)
        announce(" done\n")
        print(f"\nLLVM {llvm}, {chip}, {side.name}\n{counts.table}")
        if side is not PLAIN:
            check(llvm, counts.driver)
    print()
    return outcomes


def summary(releases: Mapping[int, Mapping[Side, Outcome]]) -> str:
    """Returns a table with a row for each release: the time of a launch, and the numbers of streams
    and modules that LAUNCHES launches create."""
    sides = (side.name for side in SIDES)
    head = ("a launch, in other runs", *sides, "streams created", "modules loaded")
    rows = [head]
    for llvm, outcomes in releases.items():
        times = (outcomes[side].launch.text("µs") for side in SIDES)
        before, after = outcomes[PLAIN], outcomes[IN_PLACE]
        created, loaded = (
            f"{before.calls(name):,}, then {after.calls(name):,}"
            for name in ("hipStreamCreate", "hipModuleLoadData")
        )
        rows.append((f"LLVM {llvm}", *times, created, loaded))
    lines = [*columns(rows), *EXPLANATION]
    if any("under " in cell for row in rows for cell in row):
        lines.append('"under": the time is too short for this measurement, and may be far less')
    return "\n".join(lines)


def time_launch(llvm: int, side: Side, environment: Mapping[str, str]) -> Estimate:
    """Returns the microseconds of a launch after the first, from the difference between a long run
    and a run of one launch. Both runs include HIP's own start, so the start cancels in the
    difference."""
    one, many = (build(llvm, side.library, launches) for launches in (1, side.many))
    taken: dict[Path, list[float]] = {one: [], many: []}
    for _ in range(REPETITIONS):
        for program, samples in taken.items():
            start = time.perf_counter()
            execute(side, program, environment)
            samples.append((time.perf_counter() - start) * 1e6)
    return each(taken[one], taken[many], side.many)


def count(llvm: int, side: Side, environment: Mapping[str, str]) -> Counts:
    """Returns the call counts of a run of LAUNCHES launches."""
    program = build(llvm, side.library, LAUNCHES)
    report = execute(side, program, {**environment, "MGPU_RT_STATS": "1"})
    program_table, driver_table = split_tables(report)
    return Counts(program_table, {name: int(calls) for calls, name in _ROW.findall(driver_table)})


def build(llvm: int, library: Path, launches: int) -> Path:
    source = bench.PROGRAMS / "forum.mlir"
    compiled = lower.lower(source, llvm=llvm, iterations=launches)
    out = PROGRAMS / f"forum-{llvm}-{library.parent.name}-{launches}"
    return object_files.link([compiled], libraries=[library], rpath=[library.parent], out=out)


def execute(side: Side, program: Path, environment: Mapping[str, str]) -> str:
    """Runs a program and returns its standard error. Raises Failed if the run failed."""
    command = [*side.command, str(program)]
    what = " ".join(command)
    try:
        done = subprocess.run(
            command,
            env={**environment, **side.environment},
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT,
        )
    except subprocess.TimeoutExpired as expired:
        raise Failed(f"{what}: not done after {TIME_LIMIT} s") from expired
    # MLIR's main returns no status, so the exit code is arbitrary; only a negative code (a signal)
    # means that the run failed.
    if done.returncode < 0:
        raise Failed(f"{what}: ended with status {done.returncode}\n{done.stderr}")
    if "failed with" in done.stderr:
        raise Failed(f"{what}: a call failed\n{done.stderr}")
    return done.stderr


def split_tables(report: str) -> tuple[str, str]:
    """Parses the two tables of MGPU_RT_STATS=1: the program's calls and the driver's calls."""
    titles = r"^mgpu_rt: (?:calls of the program|calls of the driver|launches of kernels)\n"
    parts = re.split(titles, report, flags=re.MULTILINE)
    if len(parts) != 4:
        raise Failed(f"no statistics came from the library, but:\n{report}")
    return parts[1].rstrip(), parts[2].rstrip()


def check(llvm: int, driver: Mapping[str, int]) -> None:
    """Raises Failed if a function was called more or less often than mgpu_rt promises."""
    bounds = {
        "hipModuleLoadData": (0, 1),
        "hipModuleGetFunction": (0, 1),
        "hipStreamCreate": (0, 1),
        # The iterations share a stream, which is destroyed at most once, after the loop.
        "hipStreamDestroy": (0, 1),
        "hipModuleLaunchKernel": (LAUNCHES, LAUNCHES),
        "hipStreamSynchronize": (LAUNCHES, LAUNCHES),
    }
    for name, (least, most) in bounds.items():
        calls = driver.get(name, 0)
        if not least <= calls <= most:
            raise Failed(f"LLVM {llvm}: {calls} calls of {name}, not {least} to {most}")


def announce(text: str) -> None:
    """Prints progress on standard error, so that the tables on standard output stay clean."""
    print(text, end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
