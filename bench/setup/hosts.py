"""Builds programs that run in a host process: in MLIR's JIT runner, or in Python.

All host processes answer requests for rounds as bench/native/rounds.h describes.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from bench import PROGRAMS
from bench.setup import build, native, printing
from bench.setup.device import Device
from bench.setup.sides import by_hand_arguments
from mgpu_rt._lowering import lower, toolchain

RUNNER, ENGINE = "mlir-runner", "ExecutionEngine with PyTorch"
PYTHON = "Python with PyTorch"
#: For each host, the LLVM releases whose programs the host runs.
RELEASES = {RUNNER: (22,), ENGINE: (22,), PYTHON: (19, 22)}

_MAIN = re.compile(r"llvm\.func @main\(\)( attributes \{[^}]*\})? \{")
#: Code that passes the program's renamed main to bench/native/hosted.c.
_SERVE = """
llvm.func @bench_serve(!llvm.ptr)
llvm.func @main() {
  %program = llvm.mlir.addressof @lowered_main : !llvm.ptr
  llvm.call @bench_serve(%program) : (!llvm.ptr) -> ()
  llvm.return
}
"""


def command(host: str, program: str, llvm: int, device: Device, runtime: str) -> list[str]:
    """Returns the command of a host process, which loads the runtime library from the path
    ``runtime``."""
    iterations = device.iterations.get(program)
    if host == PYTHON:
        script = native.SOURCES / "host.py"
        return [sys.executable, str(script), str(shared(program, llvm, device.chip, iterations))]
    jitted = dialect(program, llvm, device.chip, iterations)
    libraries = [runtime, str(server()), str(printing.print_library())]
    if host == ENGINE:
        return [sys.executable, str(native.SOURCES / "engine.py"), str(jitted), *libraries]
    return [
        str(toolchain.runner(llvm)),
        str(jitted),
        "-e=main",
        "--entry-point-result=void",
        *(f"--shared-libs={path}" for path in libraries),
    ]


def by_hand(host: str, program: str, device: Device) -> list[str] | None:
    """Returns the command of the loop by hand in a host process; None if the loop cannot run
    there."""
    if host == RUNNER:
        return None
    library = native.program("hoisted", device.chip, shared=True)
    arguments = by_hand_arguments(program, device)
    return [sys.executable, str(native.SOURCES / "host.py"), str(library), *arguments]


def missing(host: str) -> str | None:
    """Returns the reason why a host process cannot be measured on this machine; None if it can be
    measured."""
    try:
        if host == RUNNER:
            toolchain.runner(RELEASES[RUNNER][0])
    except toolchain.ToolchainMissing as reason:
        return str(reason)
    if host != ENGINE:
        return None
    if importlib.util.find_spec("mlir") is None:
        return "MLIR's Python bindings are not installed: pip install 'mgpu_rt[jit]'"
    command = [sys.executable, "-c", "import mlir.ir, mlir.execution_engine"]
    loaded = subprocess.run(command, capture_output=True, text=True)
    if loaded.returncode:
        said = loaded.stderr.splitlines() or [f"status {loaded.returncode}"]
        return f"MLIR's Python bindings do not load: {said[-1]}"
    return None


def shared(program: str, llvm: int, chip: str, iterations: int | None) -> Path:
    """Builds the program in the frame of lowered.c as a library, linked with the runtime."""
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
        # -Bsymbolic makes the library call its own function step, because libc also has a function
        # named step.
        build.link(compiled, result, (build.FRAME[0], "-shared", "-fPIC", "-Wl,-Bsymbolic"))
    return result


def dialect(program: str, llvm: int, chip: str, iterations: int | None) -> Path:
    """Returns the program in the LLVM dialect; hosted.c runs its main."""
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
    """Builds bench/native/hosted.c as a library."""
    result, source = native.OUT / "libhosted.so", native.SOURCES / "hosted.c"
    if not build.is_newer(result, [source, *build.FRAME]):
        native.OUT.mkdir(parents=True, exist_ok=True)
        native.compile_c([*native.FLAGS, "-shared", "-fPIC", source, "-ldl"], result)
    return result


def prepare(chip: str, iterations: Mapping[str, int], programs: Iterable[str]) -> list[Path]:
    """Builds the files of the hosted programs for a machine without MLIR."""
    made = [server(), native.program("hoisted", chip, shared=True)]
    for program in programs:
        count = iterations.get(program)
        made += [shared(program, llvm, chip, count) for llvm in RELEASES[PYTHON]]
        for llvm in RELEASES[RUNNER]:
            dialect(program, llvm, chip, count)
    return made
