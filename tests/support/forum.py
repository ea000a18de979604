"""Lowers programs by the mlir-opt command of LLVM 15 in the forum's report. A launch takes 7 calls
of the runtime. The command accepts programs with one launch of each kernel."""

from __future__ import annotations

import os
from pathlib import Path

from mgpu_rt._lowering import toolchain
from mgpu_rt._lowering.pipelines import NO_QUEUES, Pipeline
from mgpu_rt._lowering.steps import Step

LLVM, CHIP = 15, "gfx906"

_PASSES = (
    "-gpu-kernel-outlining",
    "-convert-scf-to-cf",
    "-convert-func-to-llvm=use-bare-ptr-memref-call-conv",
    "-pass-pipeline=gpu.module(strip-debuginfo,convert-gpu-to-rocdl,reconcile-unrealized-casts)",
    "-convert-math-to-llvm",
    f"-gpu-to-hsaco=chip={CHIP}",
    "-gpu-to-llvm",
    "-reconcile-unrealized-casts",
)


class Forum(Pipeline):
    """The forum's way to lower a program. It runs no further passes."""

    def steps(self) -> list[Step]:
        return [Step(_command()), NO_QUEUES]


def pipeline() -> Pipeline:
    """Returns the pipeline. Its passes are a part of it, because they decide on a cached result."""
    return Forum(LLVM, CHIP, "bin", first=" ".join(_PASSES))


def _command() -> list[Path | str]:
    """LLVM 15 always runs /opt/rocm/llvm/bin/ld.lld. If the machine lacks that file, a mount
    namespace provides it, and leaves the machine unchanged. The namespace hides all of /opt, so the
    program is passed through pipes."""
    command: list[Path | str] = [toolchain.tool("mlir-opt", LLVM), *_PASSES]
    linker = toolchain.tool("ld.lld", LLVM)
    if not Path("/opt/rocm/llvm/bin/ld.lld").exists():
        prepare = (
            "mount -t tmpfs none /opt && mkdir -p /opt/rocm/llvm/bin && "
            f"ln -s {linker} /opt/rocm/llvm/bin/ld.lld && "
            f'ln -s {toolchain.device_libraries()} /opt/rocm/amdgcn && exec "$@"'
        )
        # Without root, a user namespace gives the privilege to mount, if the system permits user
        # namespaces.
        as_root = [] if os.geteuid() == 0 else ["--map-root-user"]
        unshare = toolchain.other("unshare", "util-linux")
        command = [unshare, "--mount", *as_root, "sh", "-c", prepare, "sh", *command]
    return command
