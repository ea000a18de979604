"""Builds the environment in which `mgpu-rt run` starts a program. The environment's variables
preload mgpu_rt and select a device."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import click

from mgpu_rt import _hip_search, library_path
from mgpu_rt._cli import cuda, softgpu
from mgpu_rt._cli.errors import CommandError, NoDevice

KFD = Path("/dev/kfd")


# ---- the device ----

KINDS = ("auto", "hip", "softgpu", "cuda")

#: The variables that select GPUs by number, and hide the others from HIP or from NVIDIA's driver.
#: These variables have no meaning for an emulated device.
VISIBLE = ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")


def devices() -> list[str]:
    """The values of --device: a kind of device, or a device that softgpu emulates."""
    return [*KINDS, *softgpu.TARGETS]


def not_a_device(word: str) -> str:
    """Returns the reason why --device cannot accept this value; returns "" for a valid value."""
    return "" if word in devices() else f"'{word}' is none of {', '.join(devices())}"


def kind(device: str, base: Mapping[str, str]) -> tuple[str, Mapping[str, str]]:
    """Returns the kind of a device, and the environment that selects an emulated device."""
    if device not in softgpu.TARGETS:
        return device, base
    plain = {name: value for name, value in base.items() if name not in VISIBLE}
    return "softgpu", {**plain, "MGPU_RT_SOFTGPU": softgpu.with_targets(device, base)}


def automatic(base: Mapping[str, str]) -> tuple[str, str]:
    """Returns the device that `auto` selects, and the reason. Raises CommandError if the machine
    has no device.

    `auto` tries AMD's GPU, then NVIDIA's, then the software GPU. If MGPU_RT_HIP names a HIP
    library, `auto` selects hip without a search.
    """
    if base.get("MGPU_RT_HIP"):
        return "hip", "MGPU_RT_HIP names the HIP library"
    without_hip = ""
    if KFD.exists():
        found = _hip_search.find(base)
        if found:
            return "hip", f"there is an AMD GPU, and HIP in {next(iter(found))}"
        without_hip = ", which needs a HIP library (libamdhip64) that was not found: install ROCm"
    if cuda.present(base):
        return "cuda", "there is an NVIDIA GPU and no AMD GPU"
    amd = f"no AMD GPU (there is no {KFD})" if not without_hip else f"an AMD GPU{without_hip}"
    try:
        softgpu.environment(base)
    except NoDevice as error:
        raise CommandError(
            f"there is no GPU that a program could run on: {amd}, no NVIDIA GPU with its driver, "
            f"and {error}"
        ) from None
    return "softgpu", f"there is {amd} and no NVIDIA GPU: kernels are emulated"


def choose(device: str, base: Mapping[str, str]) -> str:
    """Returns `device`, or the device that `auto` selects. Raises CommandError if the machine has
    no device."""
    return device if device != "auto" else automatic(base)[0]


def announced(device: str) -> str:
    """Returns the result of `choose`. Prints on stderr the device that `auto` selected, and the
    reason."""
    if device != "auto" or os.environ.get("MGPU_RT_HIP"):
        return choose(device, os.environ)
    device, why = automatic(os.environ)
    click.echo(f"mgpu-rt: --device {device}: {why}", err=True)
    return device


def device_environment(device: str, base: Mapping[str, str]) -> dict[str, str]:
    """Returns the complete environment for programs that run on `device`, a result of `choose`."""
    device, base = kind(device, base)
    if device == "softgpu":
        return softgpu.environment(base)
    if device == "cuda":
        return cuda.environment(base)
    if problem := _without_hip(base):
        raise CommandError(problem)
    return dict(base)


def not_hip(base: Mapping[str, str]) -> str:
    """Returns the reason why the path in MGPU_RT_HIP is no library. Returns "" if the variable is
    unset, and for a name that the loader looks for."""
    named = base.get("MGPU_RT_HIP", "")
    return _hip_search.why_not(named) if "/" in named else ""


def _without_hip(base: Mapping[str, str]) -> str:
    """Returns the reason why programs would find no HIP library; returns "" if no reason is
    known."""
    if why := not_hip(base):
        return why
    runtime()  # this looks for HIP
    if base.get("MGPU_RT_HIP") or _hip_search.find(base):
        return ""
    return (
        "there is no HIP library (libamdhip64): install ROCm, or set MGPU_RT_HIP to its path, also "
        "to that of one which the program brings; with no AMD GPU: --device softgpu"
    )


def enter(device: str) -> None:
    """Executes this command again in the environment of a device, unless the process is in it
    already. The loader reads LD_LIBRARY_PATH only when a process starts. Raises CommandError."""
    environment = device_environment(announced(device), os.environ)
    if environment != dict(os.environ):
        sys.stdout.flush()
        sys.stderr.flush()
        os.execve(sys.executable, sys.orig_argv, environment)


def this_command() -> list[str]:
    """Returns the words that start mgpu-rt as this process was started."""
    return [sys.executable, *sys.orig_argv[1 : len(sys.orig_argv) - len(sys.argv) + 1]]


# ---- the library ----


def runtime() -> str:
    """Returns the library's path in a form that LD_PRELOAD accepts."""
    try:
        path = library_path()
    except FileNotFoundError as error:
        raise CommandError(str(error)) from None
    if ":" in path or ";" in path:
        raise CommandError(
            f"LD_PRELOAD cannot contain '{path}': install mgpu_rt in a path without ':' and ';'"
        )
    return path


def with_library(base: Mapping[str, str]) -> dict[str, str]:
    """Preloads the library before all other preloaded libraries.

    The library's directory is appended to LD_LIBRARY_PATH. A program that was linked with LLVM's
    own library starts only if the loader finds that library's file name, which depends on the LLVM
    release. LD_PRELOAD cannot contain a path with a space. If the directory's path has a space,
    LD_PRELOAD gets only the file name, and the directory comes first in LD_LIBRARY_PATH.
    """
    library = runtime()
    here, name = os.path.split(library)
    if " " in library:
        library = name
    preloaded = [path for path in base.get("LD_PRELOAD", "").replace(":", " ").split(" ") if path]
    search = [path for path in base.get("LD_LIBRARY_PATH", "").split(":") if path and path != here]
    search = [here, *search] if " " in here else [*search, here]
    return {
        **base,
        "LD_PRELOAD": ":".join([library, *(path for path in preloaded if path != library)]),
        "LD_LIBRARY_PATH": ":".join(search),
    }


def environment(device: str, base: Mapping[str, str] = os.environ) -> dict[str, str]:
    return with_library(device_environment(choose(device, base), base))
