"""Runs a checked program: defines the program's environment and exit status."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import click

from mgpu_rt import _hip_search
from mgpu_rt._cli import child, options, overrides, preload, softgpu
from mgpu_rt._cli.errors import CommandError

#: The variable that names the file to which the device writes reports (softgpu/src/check/report.c).
OUTPUT = "MGPU_RT_CHECK"

#: The checker of calls, for programs on a real GPU.
CALLS = "libmgpu_rt_check.so"

#: Records the blocks of the program's malloc.
HOST = "libmgpu_rt_check_host.so"


def unexamined(device: str) -> str:
    """Returns what check does not examine on a device, for its last line."""
    kernels = "" if _is_emulated(device) else "kernels, "
    return f"not examined: {kernels}what host code itself reads and writes"


def slow(device: str) -> str:
    return "check emulates each instruction of its kernels" if _is_emulated(device) else "wait"


def _is_emulated(device: str) -> bool:
    return device not in ("hip", "cuda")


def environment(device: str, output: Path) -> dict[str, str]:
    overrides.must_be_unset(os.environ, "the calls that check examines")
    result = _emulated(device) if _is_emulated(device) else _calls_only(device)
    return result | {OUTPUT: str(output)}


def _checker(name: str) -> Path:
    checker = softgpu.BUILD / "softgpu" / "check" / name
    if not checker.exists():
        raise CommandError(f"{checker} is missing: build mgpu_rt with the software GPU")
    return checker


def _calls_only(device: str) -> dict[str, str]:
    """Returns the environment in which the checker examines a program's calls on a real GPU."""
    result = preload.environment(device)
    checker, host = str(_checker(CALLS)), _checker(HOST)
    if any(letter in checker for letter in " :;"):
        raise CommandError(f"LD_PRELOAD cannot contain '{checker}': the path has a space or colon")
    # The loader runs the constructor of the first preloaded library last. By then the runtime may
    # already have opened HIP.
    return result | {"LD_PRELOAD": f"{checker}:{host}:{result['LD_PRELOAD']}"}


def _emulated(device: str) -> dict[str, str]:
    kind, base = preload.kind("softgpu" if device == "auto" else device, os.environ)
    hip = softgpu.hip(base, seam=softgpu.DRIVER)
    result = preload.environment(kind, {**base, "MGPU_RT_HIP": str(hip)})
    checker = _checker(softgpu.DRIVER)
    if softgpu.DRIVER not in _hip_search.seams(result["MGPU_RT_HIP"]):
        raise CommandError(
            f"check runs only HIP 5, and {result['MGPU_RT_HIP']} is another library: set "
            f"MGPU_RT_HIP to the path of HIP 5, or unset it"
        )
    # With HSA_DISABLE_FRAGMENT_ALLOCATOR the driver separates allocations, and never reuses an
    # allocation's memory.
    result["HSA_DISABLE_FRAGMENT_ALLOCATOR"] = "1"
    # With this value of MGPU_RT_CACHE the runtime caches no memory: each mgpuMemFree calls HIP and
    # waits for the device. So each access to freed memory is a use after free.
    _tell_ignored(result.get("MGPU_RT_CACHE", ""))
    result["MGPU_RT_CACHE"] = "modules,functions,streams"
    result["LD_LIBRARY_PATH"] = f"{checker.parent}:{result['LD_LIBRARY_PATH']}"
    result["LD_PRELOAD"] = f"{_checker(HOST).name}:{result['LD_PRELOAD']}"
    return result


def _tell_ignored(caches: str) -> None:
    """Prints a line if MGPU_RT_CACHE has a wrong value, which check replaces."""
    for text in options.senseless() if caches else ():
        if text.startswith("MGPU_RT_CACHE="):
            wrong = text.removesuffix(": on is used")
            click.echo(f"mgpu-rt: {wrong}: check on the emulated GPU ignores it", err=True)


def end_if_signalled(over: child.Ended) -> None:
    """Ends check if Ctrl-C or SIGTERM was to end it. Raises KeyboardInterrupt."""
    if over.interrupted:
        raise KeyboardInterrupt
    if over.terminated:
        child.end_as(signal.SIGTERM)


def exit_status(status: int, failed: int) -> int:
    """Returns check's exit status for a program without faults: the program's status, or 1 in place
    of 0 if calls failed. After a signal, returns 128 plus the signal's number, as a shell does."""
    if status == 0 and failed:
        return 1
    return status if status >= 0 else 128 - status
