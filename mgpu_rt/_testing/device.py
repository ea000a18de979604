"""Chooses the device of a test session, and executes pytest in that device's environment.

The loader reads LD_LIBRARY_PATH and LD_PRELOAD only when a process starts.
"""

from __future__ import annotations

import os
import sys

import pytest

from mgpu_rt._cli import preload, softgpu
from mgpu_rt._cli.errors import CommandError

#: The variable that says for which word of --mgpu-device the environment was made, and the kind of
#: device that the word selects: auto=softgpu.
_ENTERED = "MGPU_RT_TEST_DEVICE"

NEEDS = "mgpu needs pytest --mgpu-device auto (or addopts)"


def enter(word: str) -> None:
    """Executes pytest again in the environment of a device, unless this process is in it already.
    Raises pytest.UsageError if the device is missing."""
    if os.environ.get(_ENTERED, "").partition("=")[0] == word:
        return
    if why := preload.not_a_device(word):
        raise pytest.UsageError(f"--mgpu-device {word}: {why}")
    try:
        kind, base = preload.kind(preload.announced(word), os.environ)
        environment = preload.with_library(preload.device_environment(kind, base))
    except CommandError as error:
        raise pytest.UsageError(error.message) from None
    environment[_ENTERED] = f"{word}={kind}"
    os.execve(sys.executable, sys.orig_argv, environment)


def kind() -> str:
    """Returns the kind of the session's device: hip, cuda, softgpu."""
    return os.environ[_ENTERED].partition("=")[2]


def chips() -> tuple[str, ...]:
    """Returns the names of the emulated devices, such as gfx942; none for a GPU."""
    return tuple(softgpu.targets(os.environ)) if kind() == "softgpu" else ()


def check(item: pytest.Item) -> None:
    """Skips a marked test whose mark names other devices than the session's device, and fails the
    test if no device can run it."""
    if not item.config.getoption("mgpu_device"):
        pytest.fail(NEEDS, pytrace=False)
    for mark in item.iter_markers("mgpu"):
        if why := next(filter(None, (preload.not_a_device(str(word)) for word in mark.args)), ""):
            pytest.fail(f"@pytest.mark.mgpu: {why}", pytrace=False)
        if mark.args and not {kind(), *chips()} & {*mark.args}:
            here = ", ".join(chips()) or kind()
            why = f"for {', '.join(mark.args)}, and --mgpu-device is {here}"
            raise pytest.skip.Exception(why, _use_item_location=True)
