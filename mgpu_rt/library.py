"""The C library in a Python process: where it lies, and its functions through cffi."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

from cffi import FFI

from mgpu_rt import abi

NAME = "libmlir_rocm_runtime.so"


def path() -> str:
    """The path of the library. Raises FileNotFoundError if it was not built."""
    package = Path(__file__).resolve().parent
    candidates = [package / "lib" / NAME, package.parent / "build" / "lib" / NAME]
    for candidate in candidates:
        if candidate.exists():
            return str(candidate)
    raise FileNotFoundError(f"{candidates[-1]} was not built: run `make` in {package.parent}")


class Library:
    """The functions of the library. Those of the ABI are attributes: `library.mgpuStreamCreate()`.

    Pointers are cffi's, made by `library.ffi`.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.ffi = FFI()
        self.ffi.cdef(abi.cdef())
        self.ffi.cdef("void free(void *);")
        self._lib = self.ffi.dlopen(path)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("mgpu"):
            raise AttributeError(name)
        return getattr(self._lib, name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(name for name in dir(self._lib) if name.startswith("mgpu"))]

    def __repr__(self) -> str:
        return f"<mgpu_rt {self.version()} at {self.path}>"

    def stats(self) -> dict[str, Any]:
        """The statistics so far, as README.md describes them.

        Calls and times are counted only if MGPU_RT_STATS was set at the first call.
        """
        text = self._lib.mgpu_rt_stats_json()
        if not text:
            raise MemoryError("mgpu_rt_stats_json")
        try:
            return json.loads(self.ffi.string(text))
        finally:
            self._lib.free(text)

    def empty_cache(self) -> int:
        """Gives back to the driver what is cached and not in use; returns how many objects."""
        return self._lib.mgpu_rt_empty_cache()

    def use_stream(self, stream: int) -> None:
        """Makes mgpuStreamCreate on this thread return `stream`, a hipStream_t; 0 ends that.

        The stream stays the caller's and has to live until then.
        """
        if self._lib.mgpu_rt_use_stream(self.ffi.cast("hipStream_t", stream)) != 0:
            raise MemoryError("mgpu_rt_use_stream")

    def version(self) -> str:
        """The version of the library, "major.minor.patch"."""
        return self.ffi.string(self._lib.mgpu_rt_version()).decode()


@functools.cache
def load() -> Library:
    """The library, loaded once. Raises FileNotFoundError if it was not built."""
    return Library(path())
