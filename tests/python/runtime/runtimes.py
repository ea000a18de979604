"""Runtimes for the tests; MGPU_RT_RUNTIME finds them because this folder is on the PYTHONPATH."""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import Any

from mgpu_rt.runtime import Launch, PlainRuntime, Runtime
from mgpu_rt.runtime._base import METHODS


class PassAll(Runtime):
    """A hook that passes each call on unchanged."""


def _pass(method: str) -> Any:
    def on(self: Runtime, *arguments: Any) -> Any:
        return getattr(super(PassAll, self), method)(*arguments)

    return on


for _method in set(METHODS.values()):
    setattr(PassAll, _method, _pass(_method))


class Names(Runtime):
    """Prints each launch."""

    def launch_kernel(self, launch: Launch) -> None:
        print(launch, file=sys.stderr, flush=True)
        super().launch_kernel(launch)

    def end(self) -> None:
        print("the end", file=sys.stderr)


class Forgets(Names):
    """This class's __init__ does not call Runtime's __init__."""

    def __init__(self) -> None:
        pass


class SlowToMake(PlainRuntime):
    """The constructor is slow; the first calls of all other threads wait for the constructor's
    end."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        time.sleep(0.3)
        self.made = threading.get_ident()

    def stream_create(self) -> int:
        print("asked", file=sys.stderr, flush=True)
        return super().stream_create()


class Set(Runtime):
    count = 1
    ratio = 0.5
    word = "none"
    on = False

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        print(self.count, self.ratio, self.word, self.on, file=sys.stderr)


class NoRuntime:
    pass


class Surroundings(Runtime):
    """Prints three settings of the interpreter: the UTF-8 mode, PYTHONHOME and the prefix."""

    def stream_create(self) -> int:
        words = (sys.flags.utf8_mode, os.environ.get("PYTHONHOME"), sys.prefix)
        print(*words, file=sys.stderr, flush=True)
        return super().stream_create()


class Waits(Runtime):
    def stream_create(self) -> int:
        import signal  # noqa: F401  # the first import takes SIGINT

        print("waiting", file=sys.stderr, flush=True)
        time.sleep(100)
        return 0


class OfThreads(Runtime):
    """Prints how often each thread has called it, from a variable of the thread. Launches
    nothing."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._local = threading.local()

    def launch_kernel(self, launch: Launch) -> None:
        self._local.count = getattr(self._local, "count", 0) + 1
        print(self._local.count, launch.grid)
