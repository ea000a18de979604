"""Chooses the device of a test session, and the environment of programs on that device."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from mgpu_rt._cli import cuda, preload, softgpu
from mgpu_rt._cli.errors import CommandError


@dataclass(frozen=True)
class Device:
    """A device, and the environment in which a program runs on the device with the library
    preloaded."""

    kind: str  # hip, cuda, softgpu
    chips: tuple[str, ...]  # names of an emulated device, such as gfx942
    environment: Mapping[str, str]

    def __str__(self) -> str:
        chips = f" {', '.join(self.chips)} (emulated)" if self.chips else ""
        return (
            f"{self.kind}{chips}, {self.environment.get('MGPU_RT_HIP', 'the HIP of this machine')}"
        )


CHOSEN = pytest.StashKey[Device]()


def of(config: pytest.Config) -> Device:
    """Returns the session's device. Raises CommandError if the device is missing."""
    if CHOSEN not in config.stash:
        word = config.getoption("mgpu_device") or "auto"
        if why := preload.not_a_device(word):
            raise CommandError(f"--mgpu-device {word}: {why}")
        chosen = "softgpu" if word == "auto" and _is_set_up() else preload.choose(word, os.environ)
        kind, base = preload.kind(chosen, os.environ)
        _need_gpu(kind, base)
        environment = preload.with_library(preload.device_environment(kind, base))
        chips = tuple(softgpu.targets(environment)) if kind == "softgpu" else ()
        config.stash[CHOSEN] = Device(kind, chips, environment)
    return config.stash[CHOSEN]


#: The device files of AMD's GPUs, on Linux and on Windows Subsystem for Linux.
_AMD = (preload.KFD, Path("/dev/dxg"))


def _need_gpu(kind: str, base: Mapping[str, str]) -> None:
    """Raises CommandError if `kind` needs a GPU that the machine lacks."""
    if kind == "cuda":
        try:
            cuda.driver(base)
        except cuda.CudaUnavailable as error:
            raise CommandError(f"no NVIDIA GPUs: {error}") from None
    if kind == "hip" and not base.get("MGPU_RT_HIP") and not any(gpu.exists() for gpu in _AMD):
        raise CommandError(
            f"no AMD GPU: there is no {preload.KFD}; --mgpu-device softgpu emulates one"
        )


def _is_set_up() -> bool:
    """Returns True if the environment is already set up for the emulated device, for example
    by `mgpu-rt config --env`."""
    folder = str(softgpu.BUILD / "softgpu")
    search = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    return "MGPU_RT_SOFTGPU" in os.environ and folder in search


def named(config: pytest.Config) -> Device:
    """Returns the session's device; ends the session with a message if the device is missing."""
    try:
        return of(config)
    except CommandError as error:
        raise pytest.UsageError(error.message) from None


def here(config: pytest.Config) -> Device:
    """Returns the session's device; fails the test if the device is missing."""
    try:
        return of(config)
    except CommandError as error:
        why = error.message
    pytest.fail(why, pytrace=False)


def unwanted(item: pytest.Item, device: Device) -> str:
    """Returns the reason why a test does not run on this device, or an empty string. A test's marks
    name the devices on which the test runs."""
    for mark in item.iter_markers("mgpu"):
        for word in mark.args:
            if why := preload.not_a_device(str(word)):
                pytest.fail(f"@pytest.mark.mgpu: {why}", pytrace=False)
        if mark.args and not {device.kind, *device.chips} & {*mark.args}:
            here = ", ".join(device.chips) or device.kind
            return f"for {', '.join(mark.args)}, and --mgpu-device is {here}"
    return ""
