"""Runtimes in Python that only forward calls; bench/measure/in_python.py measures these
runtimes."""

from __future__ import annotations

from typing import Any

from mgpu_rt.hooks import LaunchHook
from mgpu_rt.runtime._base import METHODS, Runtime
from mgpu_rt.runtime._objects import Launch


class Observe(LaunchHook):
    """A hook as docs/write-a-runtime.md recommends it, which only makes the launch."""

    def on_launch(self, launch: Launch) -> None:
        super().on_launch(launch)


class All(Runtime):
    """Passes every call on to the library."""


def _pass(method: str) -> Any:
    own = getattr(Runtime, method)

    def on(self: Runtime, *arguments: Any) -> Any:
        return own(self, *arguments)

    return on


for _method in set(METHODS.values()):
    setattr(All, _method, _pass(_method))
