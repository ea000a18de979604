"""Runtimes in Python that only forward calls; bench/measure/in_python.py measures these
runtimes."""

from __future__ import annotations

from typing import Any, ClassVar

from mgpu_rt.hooks import LaunchHook
from mgpu_rt.runtime._base import METHODS, Runtime
from mgpu_rt.runtime._objects import Launch


class Observe(LaunchHook):
    """A hook as docs/write-a-runtime.md recommends it, which only makes the launch."""

    def on_launch(self, launch: Launch) -> None:
        super().on_launch(launch)


class OnKernel(Runtime):
    """A hook on launches. Python also handles the calls that load modules and look up functions, so
    that a launch has the kernel's name."""

    def launch_kernel(self, launch: Launch) -> None:
        super().launch_kernel(launch)


class OnLaunch(OnKernel):
    """A hook on launches that does not need the kernel's name."""

    knows_kernels: ClassVar[bool] = False


class All(Runtime):
    """Passes every call on to the library."""

    knows_kernels: ClassVar[bool] = False


def _pass(method: str) -> Any:
    own = getattr(Runtime, method)

    def on(self: Runtime, *arguments: Any) -> Any:
        return own(self, *arguments)

    return on


for _method in set(METHODS.values()):
    setattr(All, _method, _pass(_method))
