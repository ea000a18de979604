"""Runtimes and hooks with faults, for test_failing.py. Each class is named after its fault."""

from __future__ import annotations

import os
import sys
from typing import Any

import mgpu_rt
from mgpu_rt import HipError
from mgpu_rt.hooks import LaunchHook
from mgpu_rt.runtime import Runtime


def _runtime(method: str, function: Any) -> type:
    return type("Mine", (Runtime,), {method: function})


# ---- methods that are no plain functions ----


async def _coroutine(self: Any, *_arguments: object) -> None: ...


def _generator(self: Any, *_arguments: object) -> Any:
    yield


Misspelt = type("Mine", (LaunchHook,), {"on_lanch": _generator})
MisspeltCall = _runtime("launch_kernle", lambda self, launch: None)
NoHook = _runtime("on_launch", lambda self, launch: None)
OwnMethod = type("Mine", (LaunchHook,), {"on_free": _generator})
GeneratorHook = type("Mine", (LaunchHook,), {"on_launch": _generator})
AsyncStream = _runtime("stream_create", _coroutine)
HiddenSync, HiddenEnd = (
    _runtime("stream_synchronize", lambda *_: _coroutine(None)),
    _runtime("end", lambda *_: _coroutine(None)),
)
NoMethod = _runtime("stream_synchronize", None)
TakesNothing = _runtime("stream_synchronize", lambda self: None)
RaisingProperty = _runtime("stream_synchronize", property(lambda self: 1 // 0))

# ---- wrong results of a method ----


def _returns(value: object) -> type:
    return _runtime("stream_create", lambda self: value)


ReturnsNone, ReturnsHuge = _returns(None), _returns(1 << 64)
ReturnsFromLaunch = _runtime("launch_kernel", lambda self, launch: 0)

# ---- exceptions of a method ----


class _Unspeakable(Exception):
    def __str__(self) -> str:
        raise ValueError

    __repr__ = __str__


def _raises(error: BaseException) -> type:
    def stream_synchronize(self: Runtime, stream: int) -> None:
        raise error

    return _runtime("stream_synchronize", stream_synchronize)


Raises, Unspeakable = _raises(ZeroDivisionError("on purpose")), _raises(_Unspeakable())
ErrorOf40Bits = _raises(HipError("x", 1 << 40, ""))
Exits, ExitsWith7, ExitsWith256 = map(_raises, map(SystemExit, (None, 7, 256)))
ExitsWithReason = _raises(SystemExit("the reason"))
Recursive = _runtime("stream_synchronize", lambda self, stream: self.stream_synchronize(stream))


def _raises_at_the_end(error: BaseException) -> type:
    def end(self: Runtime) -> None:
        raise error

    return _runtime("end", end)


EndRaises, EndExits = _raises_at_the_end(ZeroDivisionError()), _raises_at_the_end(SystemExit(3))


def _made(error: BaseException) -> type:
    def __init__(self: Runtime) -> None:
        raise error

    return _runtime("__init__", __init__)


MakingRaises, MakingUnspeakable = _made(ZeroDivisionError("on purpose")), _made(_Unspeakable())

# ---- runtimes without a fault ----


class CallsItself(Runtime):
    """A method that calls the library; these inner calls bypass the runtime in Python."""

    def stream_create(self) -> int:
        library = mgpu_rt.load()
        library.mgpuStreamDestroy(library.mgpuStreamCreate())
        print("asked", file=sys.stderr)
        return super().stream_create()


class Forks(Runtime):
    """After the fork, the child's calls go to the library in C, and no longer to this runtime."""

    def stream_create(self) -> int:
        if child := os.fork():
            os.waitpid(child, 0)
        print("asked", file=sys.stderr, flush=True)
        return super().stream_create()


class Number(int):
    """An integer that is not exactly an int, similar to NumPy's integers."""


class ReturnsNumber(Runtime):
    def stream_create(self) -> int:
        return Number(super().stream_create())


class Prints(Runtime):
    def stream_create(self) -> int:
        print("to stdout")
        print("to stderr", file=sys.stderr)
        return super().stream_create()
