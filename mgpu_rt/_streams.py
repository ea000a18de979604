"""Streams of this library and of other libraries: their handles, and their use as external
streams."""

from __future__ import annotations

import contextlib
import operator
import threading
from collections.abc import Iterator
from typing import Any

from mgpu_rt._library import RuntimeLibrary, load

_ATTRIBUTES = ("cuda_stream", "ptr")  # with the handle: PyTorch's, CuPy's
_thread = threading.local()


def chosen_stream() -> int | None:
    """Returns the stream that this thread chose by `use_stream`; None if the library's own streams
    are used."""
    return getattr(_thread, "stream", None)


def _choose(stream: int | None) -> None:
    """Makes mgpuStreamCreate on this thread return `stream`. If `stream` is 0, only Python's
    launches use the null stream."""
    if load().mgpu_rt_use_stream(stream or 0) != 0:
        raise MemoryError("mgpu_rt_use_stream")
    _thread.stream = stream


def handle_of(stream: Any) -> int:
    """Returns the hipStream_t of a stream; 0 is the null stream. Raises TypeError."""
    if protocol := getattr(stream, "__cuda_stream__", None):
        _version, found = protocol()
    else:
        found = next((getattr(stream, a) for a in _ATTRIBUTES if hasattr(stream, a)), stream)
    if isinstance(found, bool) or not hasattr(found, "__index__"):
        raise TypeError(
            f"{stream!r} is not a stream: give one of PyTorch's or CuPy's, one with "
            "__cuda_stream__, or a hipStream_t as int"
        )
    return operator.index(found)


@contextlib.contextmanager
def use_stream(stream: Any) -> Iterator[None]:
    """Makes the library use the caller's stream, on the calling thread, during a `with` statement.

        with mgpu_rt.use_stream(torch.cuda.current_stream()):
            lowered_function(...)

    On this thread a lowered function that creates a stream gets the caller's stream, and kernels of
    `Module` run on the caller's stream by default. `stream` is a Stream, a PyTorch or CuPy
    stream, any object with `__cuda_stream__`, or a hipStream_t as int. None stands for the
    library's own streams. At the end of the `with` statement the previous stream is current again.
    Do not destroy the stream before.

    Raises TypeError if `stream` is no stream.
    """
    outer, handle = chosen_stream(), None if stream is None else handle_of(stream)
    try:
        _choose(handle)
        yield
    finally:
        _choose(outer)


@contextlib.contextmanager
def stream_for(library: RuntimeLibrary, given: Any = None) -> Iterator[tuple[int, bool]]:
    """Yields the handle of the given stream, of the thread's external stream, or of one of the
    library's. Also yields True for the last, whose work the caller waits for. Clears the thread's
    last error. Raises HipError if HIP creates no stream."""
    handle = chosen_stream() if given is None else handle_of(given)
    if handle is not None:
        library.take_error()
        yield handle, False
        return
    own = library.checked("HIP created no stream", library.mgpuStreamCreate)
    try:
        yield own, True
    finally:
        library.mgpuStreamDestroy(own)


class Stream:
    """A stream of the library. The library reuses the stream once the last reference to this
    object is gone and the stream's work is done.

        stream = mgpu_rt.Stream()
        with mgpu_rt.use_stream(stream):
            lowered_function(...)
        stream.synchronize()

    PyTorch and CuPy accept the stream as an external stream, by its handle or by __cuda_stream__.
    Raises HipError if HIP creates no stream.
    """

    def __init__(self) -> None:
        self._library = library = load()
        #: HIP's handle.
        self.handle: int = library.checked("HIP created no stream", library.mgpuStreamCreate)
        library.finalize(self, library.mgpuStreamDestroy, self.handle)

    def __int__(self) -> int:
        return self.handle

    __index__ = __int__

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle

    def __repr__(self) -> str:
        return f"<mgpu_rt.Stream {self.handle:#x}>"

    def synchronize(self) -> None:
        """Waits for all work on the stream. Raises HipError if some of that work failed."""
        wait = self._library.mgpuStreamSynchronize
        self._library.checked("the work on the stream failed", wait, self.handle)
