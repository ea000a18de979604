"""HIP as the policy calls it: through hip-python, or through ctypes where that is missing.

Both reach the very library file that the C library has opened. That matters: hip-python by itself
opens `libamdhip64.so` of its own search path, and a second runtime in the process knows nothing of
the first one's streams and modules.
"""

from __future__ import annotations

import sys
import time

from mgpu_rt._host import ffi, lib

TYPE_CHECKING = False  # typing's own costs 3 ms of the first launch
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    class Count(Protocol):
        """Takes the name of a function of HIP's and how many nanoseconds a call of it took."""

        def __call__(self, function: str, nanoseconds: int, /) -> None: ...


#: name of HIP's function -> number of its arguments, all pointers. All return hipError_t.
FUNCTIONS = {
    "hipModuleLoadData": 2,
    "hipModuleUnload": 1,
    "hipModuleGetFunction": 3,
    "hipStreamCreate": 1,
    "hipStreamDestroy": 1,
    "hipMalloc": 2,
    "hipFree": 1,
}

NOT_INITIALIZED = 3  # hipErrorNotInitialized, which hip-python answers if it has no library


class _Finder:
    """Stands in for the modules that hip-python asks for the path of its library."""

    def __init__(self, path: str) -> None:
        self._path = path

    def find_libraries(self, *_names: str) -> list[str]:
        """rocm_sdk's answer: documented, and asked first."""
        return [self._path]

    def get_library_path(self, _name: str) -> bytes:
        """What hip-python makes of all its sources, in a module whose import takes 12 ms."""
        return self._path.encode(errors="surrogateescape")


def _with_library(path: str, first_call: Callable[[], int]) -> int:
    """Makes hip-python's first call, at which it opens its library, open the file at `path`."""
    names = ("rocm_sdk", "rocm.bindings.util.paths")
    saved = {name: sys.modules.get(name) for name in names}
    sys.modules.update(dict.fromkeys(names, _Finder(path)))  # type: ignore[arg-type]
    try:
        return first_call()
    finally:
        for name, module in saved.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


def _through_hip_python(path: str) -> dict[str, Callable[..., int]]:
    """HIP's functions as hip-python binds them. Raises ImportError if it is not installed.

    rocm.bindings.cyhip is hip-python's lower layer: importing it takes 1 ms, the upper one 24 ms.
    Its functions are C functions in capsules; cffi calls them and releases the GIL meanwhile.
    """
    from rocm.bindings import cyhip  # type: ignore[import-not-found]

    def bind(name: str, arguments: int) -> Callable[..., int]:
        pointer = lib.mgpu_capsule_pointer(id(cyhip.__pyx_capi__[name]))
        return ffi.cast(f"int(*)({', '.join(['void *'] * arguments)})", pointer)

    version = bind("hipRuntimeGetVersion", 1)
    if _with_library(path, lambda: version(ffi.new("int *"))) == NOT_INITIALIZED:
        raise ImportError(f"hip-python could not open {path}")
    return {name: bind(name, arguments) for name, arguments in FUNCTIONS.items()}


def _through_ctypes(path: str) -> dict[str, Callable[..., int]]:
    """HIP's functions by ctypes, which releases the GIL too."""
    import ctypes

    library = ctypes.CDLL(path)

    def bind(name: str, arguments: int) -> Callable[..., int]:
        function = getattr(library, name)
        function.argtypes, function.restype = [ctypes.c_void_p] * arguments, ctypes.c_int
        return lambda *pointers: function(*(int(ffi.cast("uintptr_t", p)) for p in pointers))

    return {name: bind(name, arguments) for name, arguments in FUNCTIONS.items()}


def _timed(name: str, function: Callable[..., int], count: Count) -> Callable[..., int]:
    def call(*arguments: object) -> int:
        begin = time.perf_counter_ns()
        error = function(*arguments)
        count(name, time.perf_counter_ns() - begin)
        return error

    return call


class Hip:
    """The functions of HIP that the policy needs. Thread-safe; each returns hipError_t (0: good).

    Arguments are cffi pointers. `binding` says which way they go: "hip-python" or "ctypes". `count`
    is None unless there are statistics: it costs 1 µs a call.

    module_unload(module) unloads a module, stream_create(stream) creates a stream with HIP's
    default flags, whose handle goes to *stream, stream_destroy(stream) destroys one, and
    free(address) gives device memory back, which waits for all work on its device.
    """

    def __init__(self, path: str, count: Count | None) -> None:
        self.path = path
        try:
            functions = _through_hip_python(path)
            self.binding = "hip-python"
        except (ImportError, KeyError):
            functions = _through_ctypes(path)
            self.binding = "ctypes"
        if count is not None:
            functions = {name: _timed(name, f, count) for name, f in functions.items()}
        self._module_load = functions["hipModuleLoadData"]
        self._function_get = functions["hipModuleGetFunction"]
        self._malloc = functions["hipMalloc"]
        self.module_unload = functions["hipModuleUnload"]
        self.stream_create = functions["hipStreamCreate"]
        self.stream_destroy = functions["hipStreamDestroy"]
        self.free = functions["hipFree"]

    def module_load(self, image, module) -> int:
        """Loads an image on the current device; the handle goes to *module."""
        return self._module_load(module, ffi.cast("void *", image))

    def function_get(self, module, name, function) -> int:
        """Looks a kernel up by the C string `name`; the handle goes to *function."""
        return self._function_get(function, module, ffi.cast("void *", name))

    def malloc(self, bytes_: int, ptr) -> int:
        """Allocates device memory on the current device; the address goes to *ptr."""
        return self._malloc(ptr, ffi.cast("void *", bytes_))
