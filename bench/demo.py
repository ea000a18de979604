"""The demonstration: the forum's program without and with mgpu_rt, on AMD's own HIP without a GPU.

Frames `mgpu-rt compare` of ``programs/forum.mlir`` (launches of an empty kernel), lowered by MLIR
22, 19 and 15. Ends with status 1 if a run failed or mgpu_rt made more calls than promised.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys

import bench
from mgpu_rt._lowering import lower, object_files, pipelines, toolchain

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


class Failed(Exception):
    """Raised when the demonstration cannot continue, or has found a fault."""


def main() -> int:
    try:
        print(f"{LAUNCHES:,} launches of an empty kernel, on AMD's HIP and an emulated device\n")
        for llvm in toolchain.TESTED:
            text = compare(llvm)
            print(f"LLVM {llvm}\n\n{text}", flush=True)
            check(llvm, text)
    except (Failed, toolchain.ToolchainMissing, toolchain.LoweringFailed) as reason:
        print(f"demo: {reason}", file=sys.stderr)
        return 1
    return 0


def compare(llvm: int) -> str:
    """Runs the program of one LLVM release by `mgpu-rt compare`, and returns its tables."""
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
    return done.stdout


def check(llvm: int, text: str) -> None:
    """Raises Failed if mgpu_rt called a function more or less often than it promises. `text` has
    rows with the function, the calls before, and the calls after."""
    after = {
        name: int(calls.replace("–", "0"))
        for name, calls in re.findall(r"^(hip\w+) +(?:\d+|–) +(\d+|–)", text, re.MULTILINE)
    }
    if not after:
        raise Failed(f"mgpu-rt compare printed no table of the driver's calls, but:\n{text}")
    for name, (least, most) in PROMISED.items():
        if not least <= after.get(name, 0) <= most:
            raise Failed(
                f"LLVM {llvm}: {after.get(name, 0)} calls of {name}, not {least} to {most}"
            )


if __name__ == "__main__":
    sys.exit(main())
