"""Defines the owner of an allocation; the owner frees the allocation when the last array is
gone."""

from __future__ import annotations

import ctypes
import os
import weakref
from typing import Any

from mgpu_rt._library import load

_C = ctypes.CDLL(None)
_C.free.argtypes = (ctypes.c_void_p,)


class Memory:
    """Memory of the host or of the device. The memory is freed when the last reference to this
    object is gone. At exit this object does not free the memory, because another package's array
    may still use the memory."""

    def __init__(self, address: int, *, on_device: bool, device: int = 0) -> None:
        self.address, self.on_device, self.device = address, on_device, device
        if on_device:
            free = (load().give_back, load().life(), load().mgpuMemFree, address, None)
        else:
            free = (_free_on_host, address)
        self._end = weakref.finalize(self, *free)
        self._end.atexit = False


def allocate(size: int) -> Memory:
    """Allocates device memory. Raises HipError."""
    library = load()
    library.take_error()
    pointer = library.mgpuMemAlloc(size, library.ffi.NULL, False)
    library.check(f"there are no {size:,} bytes of device memory")
    return Memory(int(library.ffi.cast("uintptr_t", pointer)), on_device=True, device=device())


def _free_on_host(address: int) -> None:
    _C.free(address)


# ---- queries to HIP ----


class _Attributes(ctypes.Structure):
    """hipPointerAttribute_t. HIP 6 and later use other values for `memory_type` than earlier
    releases."""

    _fields_ = (
        ("memory_type", ctypes.c_int),
        ("device", ctypes.c_int),
        ("device_pointer", ctypes.c_void_p),
        ("host_pointer", ctypes.c_void_p),
        ("is_managed", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("room", ctypes.c_uint64 * 8),
    )


def hip() -> Any:
    """Returns the HIP library in use; None before the library's first call, or without HIP."""
    library = load()
    path = library.ffi.string(library.mgpu_rt_hip_path())
    return ctypes.CDLL(os.fsdecode(path)) if path else None


def device() -> int:
    """Returns the calling thread's device."""
    driver, number = hip(), ctypes.c_int()
    if driver is not None:
        driver.hipGetDevice(ctypes.byref(number))
    return number.value


def device_of(address: int) -> int | None:
    """Returns the device that owns the memory at an address; None for host memory."""
    driver, found = hip(), _Attributes()
    if driver is None or not address:
        return None
    error = driver.hipPointerGetAttributes(ctypes.byref(found), ctypes.c_void_p(address))
    if error:
        if driver.hipPeekAtLastError() == error:
            driver.hipGetLastError()  # the program must not see this error
        return None
    is_devices = found.is_managed or (found.device_pointer and not found.host_pointer)
    return found.device if is_devices else None


def is_nvidia() -> bool:
    """Returns True if the GPU is NVIDIA's."""
    driver = hip()
    return driver is not None and hasattr(driver, "mgpu_cuhip_memory_type")
