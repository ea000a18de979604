"""Streams of this library and of other libraries: their handles, and their use as external
streams."""

from __future__ import annotations

import contextlib
import ctypes
import operator
import threading
from collections.abc import Iterator
from typing import Any

from cffi import FFI

from mgpu_rt._library import RuntimeLibrary, load

_TAKEN = (
    "a stream of PyTorch's (.cuda_stream), CuPy's (.ptr) or hip-python's, one with "
    "__cuda_stream__, or a hipStream_t as int, ctypes.c_void_p or cffi pointer"
)


def handle_of(stream: Any) -> int:
    """Returns the hipStream_t of a stream; 0 is the null stream. Raises TypeError or ValueError."""
    found = stream
    if protocol := getattr(stream, "__cuda_stream__", None):
        _version, found = protocol()
    elif callable(pointer := getattr(stream, "as_c_void_p", None)):  # hip-python's
        found = pointer()
    elif not isinstance(stream, int):
        names = ("cuda_stream", "ptr")
        found = next((getattr(stream, name) for name in names if hasattr(stream, name)), stream)
    if isinstance(found, ctypes.c_void_p):
        found = found.value or 0
    if isinstance(found, FFI.CData):
        found = int(FFI().cast("uintptr_t", found))
    try:
        handle = operator.index(found)
    except TypeError:
        raise TypeError(f"{stream!r} is not a stream: give {_TAKEN}") from None
    if isinstance(found, bool) or not 0 <= handle < 1 << 64:
        raise ValueError(f"{stream!r} is not a stream: {found!r} is not a handle")
    return handle


@contextlib.contextmanager
def use_stream(stream: Any) -> Iterator[None]:
    """Implements mgpu_rt.use_stream; mgpu_rt/__init__.py documents the function."""
    library = load()
    outer, handle = library.chosen_stream, None if stream is None else handle_of(stream)
    try:
        library.choose_stream(handle)
        yield
    finally:
        library.choose_stream(outer)


@contextlib.contextmanager
def stream_for(library: RuntimeLibrary, given: Any = None) -> Iterator[tuple[Any, bool]]:
    """Yields the given stream, or the thread's external stream, or one of the library's. Also
    yields True for the last, whose work the caller waits for. Clears the thread's last error.
    Raises HipError if HIP creates no stream."""
    handle = library.chosen_stream if given is None else handle_of(given)
    library.take_error()
    if handle is not None:
        yield library.ffi.cast("hipStream_t", handle), False
        return
    own = library.mgpuStreamCreate()
    library.check("HIP created no stream")
    try:
        yield own, True
    finally:
        library.mgpuStreamDestroy(own)


class _Entered(threading.local):
    """The uses of a stream that a thread has entered by `with`, the innermost last."""

    def __init__(self) -> None:
        self.uses: list[contextlib.AbstractContextManager[None]] = []


class Stream:
    """A stream of the library. Within a `with` statement, lowered functions and kernels run on this
    stream, as in use_stream. The stream exists until close(), or until this object is deleted.

        stream = mgpu_rt.Stream()
        with stream:
            lowered_function(...)
        stream.synchronize()

    PyTorch and CuPy accept the stream as an external stream, by its handle or by __cuda_stream__.
    Raises HipError if HIP creates no stream.
    """

    def __init__(self) -> None:
        self._library = library = load()
        library.take_error()
        stream = library.mgpuStreamCreate()
        library.check("HIP created no stream")
        self._handle = int(library.ffi.cast("uintptr_t", stream))
        self._end = library.finalize(self, library.mgpuStreamDestroy, self._handle)
        self._entered = _Entered()

    @property
    def handle(self) -> int:
        """HIP's handle. Raises ValueError after close()."""
        if self.closed:
            raise ValueError("the stream is closed")
        return self._handle

    def __index__(self) -> int:
        return self.handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle

    @property
    def closed(self) -> bool:
        """Returns True after close()."""
        return not self._end.alive

    def close(self) -> None:
        """Releases the stream; the library reuses the stream once its work is done."""
        self._end()

    def __enter__(self) -> Stream:
        use = use_stream(self)
        use.__enter__()
        self._entered.uses.append(use)
        return self

    def __exit__(self, *exception: Any) -> None:
        self._entered.uses.pop().__exit__(*exception)

    def __repr__(self) -> str:
        return f"<mgpu_rt.Stream {'closed' if self.closed else hex(self._handle)}>"

    def synchronize(self) -> None:
        """Waits for all work on the stream. Raises HipError if some of that work failed."""
        self._library.take_error()
        self._library.mgpuStreamSynchronize(self.handle)
        self._library.check("the work on the stream failed")
