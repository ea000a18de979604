"""Chooses the device of a test session, and executes pytest in that device's environment.

The loader reads LD_LIBRARY_PATH and LD_PRELOAD only when a process starts.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from mgpu_rt._cli import cuda, preload, softgpu
from mgpu_rt._cli.errors import CommandError

#: The variable that says for which word of --mgpu-device the environment was made, and the kind of
#: device that the word selects: auto=softgpu.
_ENTERED = "MGPU_RT_TEST_DEVICE"

#: The device files of AMD's GPUs, on Linux and on Windows Subsystem for Linux.
_AMD = (preload.KFD, Path("/dev/dxg"))


@dataclass(frozen=True)
class Device:
    """A device, and the environment in which a program runs on the device with the library
    preloaded."""

    kind: str  # hip, cuda, softgpu
    environment: Mapping[str, str]

    @property
    def chips(self) -> tuple[str, ...]:
        """Returns the names of an emulated device, such as gfx942."""
        return tuple(softgpu.targets(self.environment)) if self.kind == "softgpu" else ()

    def __str__(self) -> str:
        chips = f" {', '.join(self.chips)} (emulated)" if self.chips else ""
        hip = self.environment.get("MGPU_RT_HIP", "the HIP of this machine")
        return f"{self.kind}{chips}, {hip}"


_CHOSEN = pytest.StashKey[Device]()


def enter(word: str) -> None:
    """Executes pytest again in the environment of a device, unless this process is in it already.
    Raises pytest.UsageError if the device is missing."""
    if os.environ.get(_ENTERED, "").partition("=")[0] == word:
        return
    try:
        device = _choose(word)
    except CommandError as error:
        raise pytest.UsageError(error.message) from None
    environment = {**device.environment, _ENTERED: f"{word}={device.kind}"}
    os.execve(sys.executable, sys.orig_argv, environment)


def _choose(word: str) -> Device:
    """Returns the device that --mgpu-device names. Raises CommandError if the device is missing."""
    if why := preload.not_a_device(word):
        raise CommandError(f"--mgpu-device {word}: {why}")
    # `mgpu-rt config --env` may have set up the emulated device already.
    search = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    is_set_up = "MGPU_RT_SOFTGPU" in os.environ and str(softgpu.BUILD / "softgpu") in search
    chosen = "softgpu" if word == "auto" and is_set_up else preload.choose(word, os.environ)
    kind, base = preload.kind(chosen, os.environ)
    if kind == "cuda":
        try:
            cuda.driver(base)
        except cuda.CudaUnavailable as error:
            raise CommandError(f"no NVIDIA GPUs: {error}") from None
    if kind == "hip" and not base.get("MGPU_RT_HIP") and not any(gpu.exists() for gpu in _AMD):
        raise CommandError(
            f"no AMD GPU: there is no {preload.KFD}; --mgpu-device softgpu emulates one"
        )
    return Device(kind, preload.with_library(preload.device_environment(kind, base)))


def of(config: pytest.Config) -> Device:
    """Returns the session's device. Raises CommandError if the device is missing."""
    if _CHOSEN not in config.stash:
        word = config.getoption("mgpu_device")
        entered = {name: value for name, value in os.environ.items() if name != _ENTERED}
        kind = os.environ.get(_ENTERED, "").partition("=")[2]
        config.stash[_CHOSEN] = Device(kind, entered) if word else _choose("auto")
    return config.stash[_CHOSEN]


def here(config: pytest.Config) -> Device:
    """Returns the session's device; fails the test if the device is missing."""
    try:
        return of(config)
    except CommandError as error:
        why = error.message
    pytest.fail(why, pytrace=False)


def unwanted(item: pytest.Item) -> str:
    """Returns the reason why a marked test does not run on the session's device, or an empty
    string. Fails a test that cannot run on any device."""
    device = here(item.config)
    words = [str(word) for mark in item.iter_markers("mgpu") for word in mark.args]
    why = next(filter(None, map(preload.not_a_device, words)), "")
    why = f"@pytest.mark.mgpu: {why}" if why else ""
    if not item.config.getoption("mgpu_device"):
        why = "the mark mgpu needs pytest --mgpu-device auto (or addopts)"
    if why:
        pytest.fail(why, pytrace=False)
    for mark in item.iter_markers("mgpu"):
        if mark.args and not {device.kind, *device.chips} & {*mark.args}:
            here_is = ", ".join(device.chips) or device.kind
            return f"for {', '.join(mark.args)}, and --mgpu-device is {here_is}"
    return ""


def suits(item: pytest.Item) -> bool:
    """Returns True if a marked test runs on the session's device."""
    try:
        return not unwanted(item)
    except pytest.fail.Exception:
        return False
