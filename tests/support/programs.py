"""Lowers the programs of sources.py with real MLIR, links them, and runs them in each way of
using the library."""

from __future__ import annotations

import functools
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from mgpu_rt._lowering import toolchain
from tests.support import forum, lower, recordings
from tests.support.child import BUILD, STUB, environment, library
from tests.support.folders import folder
from tests.support.patience import run_process
from tests.support.printing import print_library
from tests.support.sources import SOURCES

RELEASES = (*toolchain.TESTED, forum.LLVM)

#: Programs that LLVM 15 lowers by the forum's command; later releases lower all programs.
FORUMS_COMMAND = ("forum", "loopargs", "globals", "samename")

#: Programs are linked against one library, and run with that library or with another, preloaded
#: library.
STOCK = BUILD / "stock" / "libmlir_rocm_runtime.so"
STOCK_22 = BUILD / "stock" / "22.1" / "libmlir_rocm_runtime.so"

_BODIES = BUILD / "hipstub" / "kernels.so"


def releases(program: str) -> tuple[int, ...]:
    """The LLVM releases by which a program can be lowered."""
    return tuple(llvm for llvm in RELEASES if llvm != forum.LLVM or program in FORUMS_COMMAND)


@dataclass(frozen=True)
class Way:
    """A way to run a program: the library with which the program is linked, and the library that is
    preloaded."""

    linked: Path
    preload: Path | None = None
    search: Path | None = None  # begins LD_LIBRARY_PATH


def ways() -> dict[str, Way]:
    """The ways of using the library under test."""
    return {
        "linked": Way(library()),
        "preloaded": Way(STOCK, preload=library()),
        # Besides our library, stock is in the process, because the program requests stock by a name
        # that our library lacks.
        "preloaded-22.1": Way(STOCK_22, preload=library()),
        # Without preloading, the name that the program requests is a link to our library.
        "named-22.1": Way(STOCK_22, search=BUILD / "lib"),
    }


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run. The exit status of a lowered program is random, so only signals
    count."""

    signal: int  # the signal that ended the run; 0: none
    stdout: str
    stderr: str
    log: dict | None  # the stub's record; none in its fast mode, none if a signal ended the run
    stats: dict | None  # the file that MGPU_RT_STATS wrote, if it was asked for

    def hip(self, function: str) -> int:
        """Returns the calls that the driver got, as MGPU_RT_STATS counts them."""
        assert self.stats is not None
        return self.stats["hip"].get(function, {"calls": 0})["calls"]

    @property
    def calls(self) -> list[dict]:
        """Returns the calls that the stub got, in order."""
        assert self.log is not None
        return self.log["calls"]


#: The chip and the form of the image for each backend that does not use the defaults of lower().
TARGETS = {"cuda": ("sm_90", "bin"), "cuda-ptx": ("sm_90", "isa")}


@functools.cache
def build(
    program: str, llvm: int, iterations: int | None, linked: Path, backend: str = "stub"
) -> Path:
    """Returns the executable of a program. Each process that calls this function builds its own
    file, so that no process disturbs another."""
    chip, image = TARGETS.get(backend, (None, None))
    source = SOURCES[program]
    compiled = lower.lower(source, llvm=llvm, iterations=iterations, chip=chip, image=image)
    helper = print_library()
    return lower.link(
        [compiled],
        libraries=[linked, helper],
        rpath=[linked.parent, helper.parent],
        out=folder("programs") / f"{program}-{llvm}-{iterations}-{linked.parent.name}-{image}",
    )


def run_environment(way: Way, backend: str, llvm: int, policy: str, **changes: str) -> dict:
    """Returns the environment of a run."""
    env = environment(backend.removesuffix("-ptx"))
    search = [str(way.search)] if way.search else []
    if backend == "stub":
        env["HIPSTUB_KERNELS"] = str(_BODIES)
        search.append(str(STUB.parent))  # stock finds HIP there
    elif backend in TARGETS:
        search.append(str(BUILD / "cuhip"))
    elif llvm == forum.LLVM:
        env["MGPU_RT_SOFTGPU"] = forum.CHIP
    search += [env["LD_LIBRARY_PATH"]] if "LD_LIBRARY_PATH" in env else []
    if search:
        env["LD_LIBRARY_PATH"] = os.pathsep.join(search)
    if way.preload:
        env["LD_PRELOAD"] = str(way.preload)
    if policy == "builtin":
        env["MGPU_RT_MANAGER"] = "off"
    return {**env, **changes}


def execute(command: list[str], env: dict[str, str], *, stats: bool = False) -> Outcome:
    """Runs a command. With `stats`, the library counts every call, and so uses its slow entry."""
    with tempfile.TemporaryDirectory() as scratch:
        log_path, stats_path = Path(scratch, "log"), Path(scratch, "stats")
        if stats:
            env = {**env, "MGPU_RT_STATS": str(stats_path)}
        if env.get("HIPSTUB_MODE") == "record":
            env = {**env, "HIPSTUB_LOG": str(log_path)}
        done = run_process(command, env)
        signal = max(0, -done.returncode)
        return Outcome(signal, done.stdout, done.stderr, _json(log_path), _stats(stats_path))


def _json(path: Path) -> dict | None:
    return json.loads(path.read_text()) if path.exists() else None


def _stats(path: Path) -> dict | None:
    return recordings.stats(path) if path.exists() else None


def run(
    program: str,
    llvm: int,
    way: Way,
    *,
    backend: str = "stub",
    policy: str = "python",
    iterations: int | None = None,
    stats: bool = False,
    **changes: str,
) -> Outcome:
    """Builds and runs a program."""
    executable = build(program, llvm, iterations, way.linked, backend)
    env = run_environment(way, backend, llvm, policy, **changes)
    return execute([str(executable)], env, stats=stats)
