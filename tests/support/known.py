"""Helpers for several tests of the runtime: a kernel, and C programs that use the runtime."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.support.child import ROOT, Mgpu, environment, library
from tests.support.compiled import compile_c
from tests.support.images import code_object
from tests.support.patience import run_process

KERNEL = "test_func"
STOCK = ROOT / "build" / "stock" / "libmlir_rocm_runtime.so"


def forum(mgpu: Mgpu):
    return mgpu.function(mgpu.load(mgpu.image(code_object("forum"))), KERNEL)


def alloc(mgpu: Mgpu, size: int, stream=None):
    """Returns device memory; the allocation must succeed."""
    block = mgpu.MemAlloc(size, stream or mgpu.null, False)
    assert block != mgpu.null
    return block


def program(
    directory: Path, source: str, *flags: str, runtime: Path | None = None, name: str = "program"
) -> Path:
    """Compiles a C program, linked with the library under test or with another runtime."""
    at = runtime or library()
    linked = (str(at), f"-Wl,-rpath,{at.parent}", "-Wl,--allow-shlib-undefined", "-pthread", "-ldl")
    return compile_c(directory / name, source, *linked, *flags)


def run_program(
    path: Path, *words: object, backend: str = "stub", **variables: str
) -> subprocess.CompletedProcess[str]:
    env = environment(backend, **variables)
    folders = [env.get("LD_LIBRARY_PATH", ""), str(Path(env["MGPU_RT_HIP"]).parent)]
    env["LD_LIBRARY_PATH"] = ":".join(filter(None, folders))
    command = [str(path), *map(str, words)]
    return run_process(command, env)
