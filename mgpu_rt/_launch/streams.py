"""Streams of other libraries: their handles, and their use as external streams."""

from __future__ import annotations

import contextlib
import ctypes
import operator
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
    found = _handle(stream)
    try:
        handle = operator.index(found)
    except TypeError:
        raise TypeError(f"{stream!r} is not a stream: give {_TAKEN}") from None
    if isinstance(found, bool) or not 0 <= handle < 1 << 64:
        raise ValueError(f"{stream!r} is not a stream: {found!r} is not a handle")
    return handle


def _handle(stream: Any) -> Any:
    if isinstance(stream, int):
        return stream
    if isinstance(stream, ctypes.c_void_p):
        return stream.value or 0
    if isinstance(stream, FFI.CData):
        return int(load().ffi.cast("uintptr_t", stream))
    if protocol := getattr(stream, "__cuda_stream__", None):
        _version, handle = protocol()
        return handle
    if callable(pointer := getattr(stream, "as_c_void_p", None)):  # hip-python's
        return pointer().value or 0
    for name in ("cuda_stream", "ptr"):
        if (handle := getattr(stream, name, None)) is not None:
            return handle
    return stream


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
