"""Gives a launch's stack back after the launch. MLIR allocates the arguments of a launch on the
stack where the launch is, so a loop of 100,000 launches would overflow the stack."""

from __future__ import annotations

import itertools
import re

#: A launch in the LLVM IR of mlir-translate. It allocates a struct of the arguments and an array of
#: their addresses, fills both, and calls the runtime, all in one block.
_LAUNCH = re.compile(
    r"^  %\S+ = alloca %\S+, align 8\b.*\n  (?P<array>%\S+) = alloca ptr, i64 .*\n"
    r"(?:  (?!.* alloca ).*\n)*?"
    r"  call void @mgpuLaunch(?:Cluster)?Kernel\(.*, ptr (?P=array), ptr null,.*\n",
    re.MULTILINE,
)
_DECLARED = "declare ptr @llvm.stacksave.p0()\ndeclare void @llvm.stackrestore.p0(ptr)\n"


def give_back(ir: str) -> str:
    """Returns the program, changed so that each launch leaves the stack as it was. The runtime has
    copied the arguments when the call of the launch returns."""
    numbers = itertools.count()

    def save(launch: re.Match[str]) -> str:
        name = f"%launch.stack.{next(numbers)}"
        return (
            f"  {name} = call ptr @llvm.stacksave.p0()\n{launch[0]}"
            f"  call void @llvm.stackrestore.p0(ptr {name})\n"
        )

    changed = _LAUNCH.sub(save, ir)
    declared = [line for line in _DECLARED.splitlines() if line.split("@")[1] not in ir]
    return ir if changed == ir else changed + "\n" + "\n".join(declared) + "\n"
