"""The demonstration: the forum's program without and with mgpu_rt, on AMD's own HIP without a GPU.

Frames `mgpu-rt compare` of ``programs/forum.mlir`` (launches of an empty kernel), lowered by MLIR
22, 19 and 15. Ends with status 1 if a run failed.
"""

from __future__ import annotations

import os
import subprocess
import sys

from bench import PROGRAMS, ROOT
from mgpu_rt._lowering import pipelines, toolchain
from tests.support import lower

LAUNCHES = 1000
OURS = ROOT / "build" / "lib" / "libmlir_rocm_runtime.so"
# A comparison takes at most ten seconds; the limit ends a run that hangs.
TIME_LIMIT = 300


def main() -> int:
    print(f"{LAUNCHES:,} launches of an empty kernel, on AMD's HIP and an emulated device")
    failures = (subprocess.TimeoutExpired, toolchain.ToolchainMissing, toolchain.LoweringFailed)
    try:
        return int(any(compare(llvm) != 0 for llvm in toolchain.TESTED))
    except failures as reason:
        print(f"demo: {reason}", file=sys.stderr)
        return 1


def compare(llvm: int) -> int:
    """Shows `mgpu-rt compare` of the program as one LLVM release lowers it; returns the status."""
    print(f"\nLLVM {llvm}\n", flush=True)
    chip = pipelines.FORUM_CHIP if llvm == 15 else pipelines.DEFAULT_CHIP
    compiled = lower.lower(PROGRAMS / "forum.mlir", llvm=llvm, iterations=LAUNCHES)
    out = ROOT / "build" / "demo" / f"forum-{llvm}"
    program = lower.link([compiled], libraries=[OURS], rpath=[OURS.parent], out=out)
    # The caller's settings of mgpu_rt are for other programs; only the caller's choice of a HIP
    # applies here.
    base = {k: v for k, v in os.environ.items() if k == "MGPU_RT_HIP" or k[:8] != "MGPU_RT_"}
    command = [sys.executable, "-m", "mgpu_rt", "compare", "--device", "softgpu", "--", program]
    env = {**base, "MGPU_RT_SOFTGPU": chip}
    return subprocess.run(command, env=env, timeout=TIME_LIMIT).returncode


if __name__ == "__main__":
    sys.exit(main())
