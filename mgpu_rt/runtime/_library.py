"""Binds the compiled part of this package, mgpu_rt._runtime, to the library in this process."""

from __future__ import annotations

import ctypes
import os

import mgpu_rt
from mgpu_rt._runtime import ffi, lib

_EXPORTS = (
    "mgpu_rt_native",
    "mgpu_rt_intercept",
    "mgpu_rt_report",
    "mgpu_rt_hip_path",
    "mgpu_rt_image_name",
    "mgpu_rt_event_flags",
)
_connected = False


def connect(addresses: tuple[int, ...] | None = None) -> None:
    """Binds to the library whose functions are at `addresses`. Without addresses, binds to the
    library that the program has loaded. If the program has loaded no library, binds to this
    package's library. Does nothing after an earlier call."""
    global _connected
    if _connected:
        return
    if addresses is None:
        library = ctypes.CDLL(None)
        if not hasattr(library, _EXPORTS[0]):
            library = ctypes.CDLL(mgpu_rt.library_path())
        found = [ctypes.cast(getattr(library, name), ctypes.c_void_p) for name in _EXPORTS]
        addresses = tuple(pointer.value or 0 for pointer in found)
    lib.use_library(*addresses)
    _connected = True


def disconnect() -> None:
    global _connected
    _connected = False


def hip_path() -> str:
    """Returns the file of the HIP library that is open; "" before the library's first call, or
    without HIP."""
    connect()
    return os.fsdecode(ffi.string(lib.hip_path()))


def open_hip() -> None:
    """Makes a call, since the library opens HIP at its first call."""
    connect()
    lib.mgpuMemFree(0, 0)
