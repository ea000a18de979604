"""Binds the compiled part of this package, mgpu_rt._runtime, to the library in this process."""

from __future__ import annotations

import ctypes
import os
from typing import Any

import mgpu_rt
from mgpu_rt import _abi
from mgpu_rt._runtime import ffi, lib

#: The library's functions.
_EXPORTS = {
    "mgpu_rt_native": "mgpu_rt_function (*)(const char *)",
    "mgpu_rt_intercept": "int (*)(const char *, mgpu_rt_function)",
    "mgpu_rt_report": "void (*)(const char *, int)",
    "mgpu_rt_hip_path": "const char *(*)(void)",
    "mgpu_rt_image_place": "uint64_t (*)(uintptr_t, char *, size_t, uint64_t *)",
}
_functions: dict[str, Any] = {}  # empty until the package is bound to a library


def connect(path: str | None = None) -> None:
    """Binds to the library that the program has loaded from this path. Without a path, binds to the
    library that the program has loaded. If the program has loaded no library, binds to this
    package's library. Does nothing after an earlier call."""
    if _functions:
        return
    library = ctypes.CDLL(path)
    if not hasattr(library, "mgpu_rt_native"):
        library = ctypes.CDLL(mgpu_rt.library_path())
    for name, kind in _EXPORTS.items():
        address = ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
        _functions[name] = ffi.cast(kind, address)
    for function in _abi.overridable():
        own = _functions["mgpu_rt_native"](function.name.encode())
        setattr(lib, f"own_{function.name}", own)


def disconnect() -> None:
    """Makes the next `connect` bind again."""
    _functions.clear()


def replace(name: str, kind: str) -> None:
    """Replaces a function of the library. The function of csrc/python/runtime.h that answers calls
    Python in its place (`kind` is "enter") or after it ("note")."""
    answer = ffi.addressof(lib, f"{kind}_{name}")
    _functions["mgpu_rt_intercept"](name.encode(), ffi.cast("mgpu_rt_function", answer))


def restore(name: str) -> None:
    _functions["mgpu_rt_intercept"](name.encode(), ffi.NULL)


def report(call: str, error: int) -> None:
    """Reports a failed call of HIP, as the library's own calls do."""
    connect()
    _functions["mgpu_rt_report"](call.encode(), error)


def hip_path() -> str:
    """Returns the file of the HIP library that is open; "" before the library's first call, or
    without HIP."""
    connect()
    return os.fsdecode(ffi.string(_functions["mgpu_rt_hip_path"]()))


def open_hip() -> None:
    """Makes a call, since the library opens HIP at its first call."""
    connect()
    lib.mgpuMemFree(0, 0)


def image_place(address: int) -> tuple[str, int, int]:
    """Returns the file that contains the image at an address, the image's address in that file, and
    the image's hash. Returns "" and 0 for what is unknown, or if the process has no library."""
    file, image_hash = ffi.new("char[]", 4096), ffi.new("uint64_t *")
    known = _functions.get("mgpu_rt_image_place")
    place = known(address, file, len(file), image_hash) if known else 0
    return os.fsdecode(ffi.string(file)), place, image_hash[0]
