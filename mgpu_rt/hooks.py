"""Hooks: runtimes that observe a program's calls. Each hook is only a few lines,
which users may copy.

    mgpu-rt run --hook trace --hook nan=f32 --kernel 'softmax*' --nth 3 -- PROGRAM

    with mgpu_rt.intercept(mgpu_rt.hooks.NanCheck(dtype="f32")):
        lowered_function(...)

Several hooks can be combined, in front of a runtime: `class Mine(Trace, NanCheck, CachedRuntime):
pass`.
"""

from __future__ import annotations

import fnmatch
import itertools
import time
from collections.abc import Iterator
from typing import Any

from mgpu_rt._numbers import FLOATS, numbers
from mgpu_rt._packages import numpy_for
from mgpu_rt._text import note_on, say
from mgpu_rt.runtime._base import METHODS, Runtime
from mgpu_rt.runtime._hip import Hip
from mgpu_rt.runtime._objects import Buffer, Launch, LoadedKernel, shown


class LaunchHook(Runtime):
    """Observes launches: override `on_launch`, and call super() to make the launch.

    `kernel` is a shell pattern for the kernel's name, with or without the name's gpu.module:
    'softmax*', 'main_kernel_0::*'. `nth` selects one launch of each matching kernel, counted from
    1; 0 selects all launches. `launch.number` counts the kernel's launches, from 1. `on_launch` is
    called only for launches that `kernel` and `nth` select. `on_launch` is not called for a launch
    that a stream captures into a graph, because that launch does not run yet.
    """

    kernel: str = "*"
    nth: int = 0

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.kernel, self.nth = self.kernel, self.nth  # Python reads attributes of objects faster
        #: Counts the launches of each kernel that the pattern `kernel` matches.
        self._counted: dict[tuple[str, ...], Iterator[int]] = {}
        self._chosen = False  # `on_launch` has seen a launch
        #: The next class's method. A call of super() for each launch would take longer.
        self._launch = super().launch_kernel

    def launch_kernel(self, launch: Launch) -> None:
        launch_next = self._launch
        if launch._capture and Hip.of_process().captures(launch):
            text = "the hook looks at no launch that a stream captures into a graph"
            self._say_once("captures", text)
            return launch_next(launch)  # returns nothing, which adapters.py checks
        kernel = self._kernels.get(launch._function) or launch.kernel
        pattern, counter = kernel._judged
        if pattern is not self.kernel:
            counter = self._counter_of(kernel)
        if counter is not None:
            launch.number = number = next(counter)
            nth = self.nth
            if not nth or nth == number:
                self._chosen = True
                return self.on_launch(launch)
        return launch_next(launch)

    def on_launch(self, launch: Launch) -> None:
        """Called for each selected launch.

        Before super() you can read the launch. After super() and `launch.finish()`,
        which waits, you can read the launch's results. If the method does not call super(), the
        kernel is not launched."""
        return self._launch(launch)

    def end(self) -> None:
        """Prints a message if `kernel` and `nth` have selected no launch."""
        if not self._chosen and (self.kernel != "*" or self.nth):
            names = ", ".join(sorted({kernel.label for kernel in self._kernels.values()})) or "none"
            wanted = f"kernel='{self.kernel}' and nth={self.nth}"
            say(f"mgpu_rt: the hook has looked at no launch: {wanted}; the kernels are {names}")
        super().end()

    def _counter_of(self, kernel: LoadedKernel) -> Iterator[int] | None:
        """Returns the counter of a kernel; None if the pattern does not match the kernel's name.
        Later launches find the pattern and the counter in `_judged`."""
        names, pattern, counter = kernel.names, self.kernel, None
        if any(fnmatch.fnmatchcase(name, pattern) for name in names):
            counter = self._counted.setdefault(names, itertools.count(1))
        kernel._judged = pattern, counter
        return counter


class Time(LaunchHook):
    """Prints at the end how long each kernel took. The hook waits for each launch, so nothing
    overlaps."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        #: For each kernel, by its names: a loaded kernel, and the seconds of each launch.
        self.times: dict[tuple[str, ...], tuple[LoadedKernel, list[float]]] = {}

    def on_launch(self, launch: Launch) -> None:
        launch.finish()  # earlier work
        begin = time.perf_counter()
        super().on_launch(launch)
        launch.finish()
        seconds, kernel = time.perf_counter() - begin, launch.kernel
        self.times.setdefault(kernel.names, (kernel, []))[1].append(seconds)

    def end(self) -> None:
        for kernel, times in sorted(self.times.values(), key=lambda pair: -sum(pair[1])):
            times.sort()
            middle, whole = 1e6 * times[len(times) // 2], 1e3 * sum(times)
            count = f"{len(times)} launch{'es' * (len(times) != 1)}"
            taken = f"{count}, {whole:.2f} ms, median {middle:.1f} µs"
            say(f"{kernel.label}: {taken}")
        if self.times and (note := note_on(Hip.of_process().device_name())):
            say(note)
        super().end()


class NanCheck(LaunchHook):
    """Stops at the first kernel that writes a NaN to an element that contained no NaN before.

    A code object does not contain the type of its buffers: pass the type as `dtype` (f16, bf16, f32
    or f64). Needs NumPy.
    """

    dtype: str = "f32"

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        numpy_for("the hook nan")
        if self.dtype not in FLOATS:
            raise ValueError(f"'{self.dtype}' has no NaN: name one of {', '.join(FLOATS)}")

    def on_launch(self, launch: Launch) -> None:
        if launch.kernel.image is not None and not launch.is_described:
            self._say_once(
                launch.kernel.label,
                f"the hook nan cannot look at {launch.kernel.label}: its image does not describe "
                "its arguments",
            )
        before = {b.address: self._nans(b, launch) for _, b in launch.buffers()}
        super().on_launch(launch)
        for number, buffer in launch.buffers():
            fresh = (self._nans(buffer, launch) & ~before[buffer.address]).nonzero()[0]
            if len(fresh):
                raise FloatingPointError(
                    f"{launch} (launch {launch.number} of this kernel) wrote {len(fresh)} NaNs, "
                    f"first [{fresh[0]}] of argument {number}, {buffer}"
                )

    def _nans(self, buffer: Buffer, launch: Launch) -> Any:
        found = numbers(buffer.content(launch.stream), self.dtype)
        return numpy_for("the hook nan").isnan(found)


class Trace(LaunchHook):
    """Prints every call with its arguments; if `kernel` or `nth` is set, prints only the selected
    launches."""

    def on_launch(self, launch: Launch) -> None:
        say(str(launch))
        super().on_launch(launch)


def _traced(method: str) -> Any:
    def call(self: Trace, *arguments: Any) -> Any:
        result = getattr(super(Trace, self), method)(*arguments)
        if self.kernel == "*" and not self.nth:
            given = ", ".join(map(shown, arguments))
            say(f"{method}({given})" + (f" = {shown(result)}" if result is not None else ""))
        return result

    call.__name__ = method
    return call


for _method in set(METHODS.values()) - {"launch_kernel"}:
    setattr(Trace, _method, _traced(_method))
