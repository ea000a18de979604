"""Programs as other hosts than their own run them: MLIR's JIT runner, and a Python process.

Both answer rounds as bench/native/rounds.h has it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from bench import PROGRAMS
from bench.setup import build, native, printing
from bench.setup.device import Device
from mgpu_rt.lowering import lower, toolchain

RUNNER, PYTHON = "mlir-runner", "Python with PyTorch"
#: The releases that each is measured with.
RELEASES = {RUNNER: (22,), PYTHON: (19, 22)}

_MAIN = re.compile(r"llvm\.func @main\(\)( attributes \{[^}]*\})? \{")
#: Takes the program's main, which is renamed, to bench/native/hosted.c.
_SERVE = """
llvm.func @bench_serve(!llvm.ptr)
llvm.func @main() {
  %program = llvm.mlir.addressof @lowered_main : !llvm.ptr
  llvm.call @bench_serve(%program) : (!llvm.ptr) -> ()
  llvm.return
}
"""


def command(host: str, program: str, llvm: int, device: Device, runtime: str) -> list[str]:
    """The host's process, with the runtime library of that path."""
    iterations = device.iterations.get(program)
    if host == PYTHON:
        script = native.SOURCES / "host.py"
        return [sys.executable, str(script), str(shared(program, llvm, device.chip, iterations))]
    jitted = dialect(program, llvm, device.chip, iterations)
    libraries = [runtime, server(), printing.print_library()]
    return [
        str(toolchain.runner(llvm)),
        str(jitted),
        "-e=main",
        "--entry-point-result=void",
        *(f"--shared-libs={path}" for path in libraries),
    ]


def shared(program: str, llvm: int, chip: str, iterations: int | None) -> Path:
    """The program in the frame of lowered.c as a library, linked with the runtime."""
    result = native.OUT / chip / f"{program}-{llvm}-{iterations or 'all'}.so"
    try:
        compiled = lower.lower(
            PROGRAMS / f"{program}.mlir", llvm=llvm, chip=chip, iterations=iterations
        )
    except toolchain.ToolchainMissing:
        if result.exists():
            return result
        raise
    if not build.is_newer(result, [compiled, *build.FRAME]):
        # Its own functions come first: libc, too, has one that is called step.
        build.link(compiled, result, (build.FRAME[0], "-shared", "-fPIC", "-Wl,-Bsymbolic"))
    return result


def dialect(program: str, llvm: int, chip: str, iterations: int | None) -> Path:
    """The program in the LLVM dialect, whose main has hosted.c run it."""
    result = native.OUT / chip / f"{program}-{llvm}-{iterations or 'all'}.jit.mlir"
    try:
        lowered = lower.lower_to_llvm_dialect(
            PROGRAMS / f"{program}.mlir", llvm, chip=chip, iterations=iterations
        )
    except toolchain.ToolchainMissing:
        if result.exists():
            return result
        raise
    text = lowered.read_text(encoding="utf-8")
    served, count = _MAIN.subn(
        lambda match: _SERVE + match[0].replace("@main", "@lowered_main"), text, count=1
    )
    if count != 1:
        raise native.Failed(f"{lowered} has no main that returns nothing")
    result.parent.mkdir(parents=True, exist_ok=True)
    result.write_text(served, encoding="utf-8")
    return result


def server() -> Path:
    """bench/native/hosted.c as a library."""
    result, source = native.OUT / "libhosted.so", native.SOURCES / "hosted.c"
    if not build.is_newer(result, [source, *build.FRAME]):
        native.OUT.mkdir(parents=True, exist_ok=True)
        native.compile_c([*native.FLAGS, "-shared", "-fPIC", source, "-ldl"], result)
    return result


def prepare(chip: str, iterations: Mapping[str, int], programs: Iterable[str]) -> list[Path]:
    """What a machine without MLIR needs of these programs."""
    made = [server()]
    for program in programs:
        count = iterations.get(program)
        made += [shared(program, llvm, chip, count) for llvm in RELEASES[PYTHON]]
        for llvm in RELEASES[RUNNER]:
            dialect(program, llvm, chip, count)
    return made
