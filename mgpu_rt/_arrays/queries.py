"""Queries to HIP that the library's functions do not answer: devices, addresses, captures."""

from __future__ import annotations

import ctypes
import functools
import os
from typing import Any

from mgpu_rt._library import load


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
    return _open(path) if path else None


@functools.cache
def _open(path: bytes) -> Any:
    return ctypes.CDLL(os.fsdecode(path))


def _refused(driver: Any, error: int) -> bool:
    """Returns True if a query failed. Clears HIP's last error, which the program must not see."""
    if error and driver.hipPeekAtLastError() == error:
        driver.hipGetLastError()
    return error != 0


def device() -> int:
    driver, number = hip(), ctypes.c_int()
    if driver is not None:
        driver.hipGetDevice(ctypes.byref(number))
    return number.value


def device_of(address: int) -> int | None:
    """Returns the device that owns the memory at an address; None for host memory."""
    driver, found = hip(), _Attributes()
    if driver is None or not address:
        return None
    if _refused(
        driver, driver.hipPointerGetAttributes(ctypes.byref(found), ctypes.c_void_p(address))
    ):
        return None
    is_devices = found.is_managed or (found.device_pointer and not found.host_pointer)
    return found.device if is_devices else None


def is_nvidia() -> bool:
    driver = hip()
    return driver is not None and hasattr(driver, "mgpu_cuhip_memory_type")


def allocation_of(address: int) -> int | None:
    """Returns the address at which the allocation around an address begins; None if HIP does not
    know the allocation."""
    driver, begin, size = hip(), ctypes.c_void_p(), ctypes.c_size_t()
    if driver is None or _refused(
        driver,
        driver.hipMemGetAddressRange(
            ctypes.byref(begin), ctypes.byref(size), ctypes.c_void_p(address)
        ),
    ):
        return None
    return begin.value


def captures(stream: int) -> bool:
    """Returns True while a program captures the stream. HIP does not capture the null stream."""
    driver = hip() if stream else None
    if driver is None or not hasattr(driver, "hipStreamGetCaptureInfo"):
        return False
    status, number = ctypes.c_int(), ctypes.c_ulonglong()
    error = driver.hipStreamGetCaptureInfo(
        ctypes.c_void_p(stream), ctypes.byref(status), ctypes.byref(number)
    )
    return not _refused(driver, error) and status.value != 0
