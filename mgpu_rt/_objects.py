"""Devices, streams and events as objects. Functions that accept a handle also accept a device,
stream or event object."""

from __future__ import annotations

import threading
import weakref
from contextlib import AbstractContextManager
from typing import Any

from mgpu_rt._launch.streams import handle_of, use_stream
from mgpu_rt._library import RuntimeLibrary, load


class _Nested(threading.local):
    """A stack for each thread. At the end of a `with` statement, the last entry restores the state
    before the statement."""

    def __init__(self) -> None:
        self.undo: list[Any] = []


class Device:
    """A device by its number. Within a `with` statement the device is the calling thread's current
    device.

        with mgpu_rt.Device(1):
            lowered_function(...)

    The `with` statement and `use` raise HipError if there is no such device. Device(7) itself does
    not ask HIP.
    """

    def __init__(self, number: int = 0) -> None:
        if not 0 <= number < 1 << 31:
            raise ValueError(f"{number} is not a number of a device")
        self.number = number
        self._nested = _Nested()

    @classmethod
    def current(cls) -> Device:
        """Returns the calling thread's device."""
        from mgpu_rt.runtime._hip import Hip

        return cls(Hip.of_process().device())

    def use(self) -> None:
        """Makes this device the calling thread's current device, until the thread chooses another
        device. Raises HipError."""
        runtime = load()
        runtime.take_error()
        runtime.mgpuSetDefaultDevice(self.number)
        runtime.check(f"device {self.number} cannot be used")

    def __enter__(self) -> Device:
        outer = Device.current()
        self.use()
        self._nested.undo.append(outer)
        return self

    def __exit__(self, *_exception: object) -> None:
        self._nested.undo.pop().use()

    def __index__(self) -> int:
        return self.number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and other.number == self.number

    def __hash__(self) -> int:
        return hash(("Device", self.number))

    def __repr__(self) -> str:
        return f"mgpu_rt.Device({self.number})"


class _Handle:
    """A handle of the library. The handle is released by close(), or when the Python object is
    deleted."""

    _KIND = ""

    def __init__(self, handle: Any) -> None:
        self._library = load()
        destroy = getattr(self._library, f"mgpu{self._KIND}Destroy")
        self._library.check(f"no {self._KIND.lower()} was made")
        self._number = int(self._library.ffi.cast("uintptr_t", handle))
        self._end = weakref.finalize(
            self, self._library.give_back, self._library.life(), destroy, self._number
        )
        self._end.atexit = False

    @property
    def handle(self) -> int:
        """HIP's handle. Raises ValueError after close()."""
        if not self._end.alive:
            raise ValueError(f"the {self._KIND.lower()} is closed")
        return self._number

    def __index__(self) -> int:
        return self.handle

    @property
    def closed(self) -> bool:
        """Returns True after close()."""
        return not self._end.alive

    def close(self) -> None:
        """Releases the handle."""
        self._end()

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"{self._number:#x}"
        return f"<mgpu_rt.{self._KIND} {state}>"


def _new(name: str) -> tuple[RuntimeLibrary, Any]:
    runtime = load()
    runtime.take_error()
    return runtime, getattr(runtime, name)()


class Stream(_Handle):
    """A stream of the library. Within a `with` statement, lowered functions and kernels run on this
    stream, as in use_stream. The stream exists until close(), or until this object is deleted.

        stream = mgpu_rt.Stream()
        with stream:
            lowered_function(...)
        stream.synchronize()

    PyTorch and CuPy accept the stream as an external stream, by its handle or by __cuda_stream__.
    """

    _KIND = "Stream"

    def __init__(self) -> None:
        super().__init__(_new("mgpuStreamCreate")[1])
        self._nested = _Nested()

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle

    def __enter__(self) -> Stream:
        lent: AbstractContextManager[None] = use_stream(self)
        lent.__enter__()
        self._nested.undo.append(lent)
        return self

    def __exit__(self, *exception: Any) -> None:
        self._nested.undo.pop().__exit__(*exception)

    def synchronize(self) -> None:
        """Waits for all work on the stream. Raises HipError if some of that work failed."""
        self._library.take_error()
        self._library.mgpuStreamSynchronize(self.handle)
        self._library.check("the work on the stream failed")

    def record(self, event: Event | None = None) -> Event:
        """Records the given event, or a new event, after the stream's current work."""
        event = event or Event()
        event.record(self)
        return event

    def wait(self, event: Event) -> None:
        """Makes the stream's later work wait for an event; the caller does not wait."""
        self._library.take_error()
        self._library.mgpuStreamWaitEvent(self.handle, event.handle)
        self._library.check("the stream does not wait")


class Event(_Handle):
    """An event: a point in a stream's work. With `timing`, this event and all events that are
    created later record the time. The end of a `with` statement closes the event.

    Raises HipError.
    """

    _KIND = "Event"

    def __init__(self, *, timing: bool = False) -> None:
        runtime = load()
        if timing:
            runtime.mgpuEventElapsedTime(None, None, None)  # this asks for times
        super().__init__(_new("mgpuEventCreate")[1])

    def __enter__(self) -> Event:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def record(self, stream: Any = None) -> None:
        """Records the event after a stream's current work. The default for `stream` is the thread's
        external stream, or the null stream if the thread has no external stream."""
        handle = (self._library.chosen_stream or 0) if stream is None else handle_of(stream)
        self._library.take_error()
        self._library.mgpuEventRecord(self.handle, handle)
        self._library.check("the event was not recorded")

    def synchronize(self) -> None:
        """Waits until all work before the event is done."""
        self._library.take_error()
        self._library.mgpuEventSynchronize(self.handle)
        self._library.check("the work before the event failed")

    def milliseconds_since(self, start: Event) -> float:
        """Returns the milliseconds on the device between `start` and this event. Both events must
        be complete, and must have been created with `timing`. Raises HipError."""
        self._library.take_error()
        elapsed = self._library.mgpuEventElapsedTime(start.handle, self.handle, None)
        self._library.check("the time between the events is not known")
        return elapsed.milliseconds
