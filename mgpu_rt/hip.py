"""HIP as the policy calls it: through hip-python, or through ctypes where that is missing.

Both reach the very library file that the C library has opened. That matters: hip-python by itself
opens `libamdhip64.so` of its own search path, and a second runtime in the process knows nothing of
the first one's streams and modules.
"""

from __future__ import annotations

import ctypes
import sys
import time

TYPE_CHECKING = False  # typing's own costs 3 ms of the first launch
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    class Count(Protocol):
        """Takes the name of a function of HIP's and how many nanoseconds a call of it took."""

        def __call__(self, function: str, nanoseconds: int, /) -> None: ...


#: name of HIP's function -> (types of its arguments). All return hipError_t.
SIGNATURES: dict[str, tuple[type, ...]] = {
    "hipModuleLoadData": (ctypes.c_void_p, ctypes.c_void_p),
    "hipModuleUnload": (ctypes.c_void_p,),
    "hipModuleGetFunction": (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p),
    "hipStreamCreate": (ctypes.c_void_p,),
    "hipStreamDestroy": (ctypes.c_void_p,),
}

NOT_INITIALIZED = 3  # hipErrorNotInitialized, which hip-python answers if it has no library


class _LibraryFinder:
    """Stands in for the module rocm_sdk, which hip-python asks first for the library's path."""

    def __init__(self, path: str) -> None:
        self._path = path

    def find_libraries(self, *_names: str) -> list[str]:
        return [self._path]


def _bind_library(path: str, first_call: Callable[[], int]) -> int:
    """Makes hip-python's first call, at which it opens its library, open the file at `path`."""
    saved = sys.modules.get("rocm_sdk")
    sys.modules["rocm_sdk"] = _LibraryFinder(path)  # type: ignore[assignment]
    try:
        return first_call()
    finally:
        if saved is None:
            del sys.modules["rocm_sdk"]
        else:
            sys.modules["rocm_sdk"] = saved


def _capsule_pointer(capsule: object) -> int:
    """The C function behind a capsule of Cython's."""
    get_name = ctypes.pythonapi.PyCapsule_GetName
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype = ctypes.c_void_p
    get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return get_pointer(capsule, get_name(capsule)) or 0


def _through_hip_python(path: str) -> dict[str, Callable[..., int]]:
    """HIP's functions as hip-python binds them. Raises ImportError if it is not installed.

    rocm.bindings.cyhip is hip-python's lower layer: importing it takes 2 ms, the upper one 24 ms.
    Its functions are C functions that release the GIL.
    """
    from rocm.bindings import cyhip  # type: ignore[import-not-found]

    capsules = cyhip.__pyx_capi__
    functions: dict[str, Callable[..., int]] = {}
    for name, arguments in SIGNATURES.items():
        prototype = ctypes.CFUNCTYPE(ctypes.c_int, *arguments)
        functions[name] = prototype(_capsule_pointer(capsules[name]))
    version = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(
        _capsule_pointer(capsules["hipRuntimeGetVersion"])
    )
    if _bind_library(path, lambda: version(ctypes.byref(ctypes.c_int()))) == NOT_INITIALIZED:
        raise ImportError(f"hip-python could not open {path}")
    return functions


def _through_ctypes(path: str) -> dict[str, Callable[..., int]]:
    """HIP's functions by ctypes, which releases the GIL too."""
    library = ctypes.CDLL(path)
    functions: dict[str, Callable[..., int]] = {}
    for name, arguments in SIGNATURES.items():
        function = getattr(library, name)
        function.argtypes, function.restype = list(arguments), ctypes.c_int
        functions[name] = function
    return functions


class Hip:
    """The functions of HIP that the policy needs. Thread-safe; each returns hipError_t (0: good).

    `binding` says which way they go: "hip-python" or "ctypes".
    """

    def __init__(self, path: str, count: Count) -> None:
        self.path = path
        self._count = count
        try:
            self._functions = _through_hip_python(path)
            self.binding = "hip-python"
        except (ImportError, KeyError):
            self._functions = _through_ctypes(path)
            self.binding = "ctypes"

    def _call(self, name: str, *arguments: object) -> int:
        begin = time.perf_counter_ns()
        error = self._functions[name](*arguments)
        self._count(name, time.perf_counter_ns() - begin)
        return error

    def module_load(self, image: int, handle: int) -> int:
        """Loads the image at an address on the current device; the handle goes to an address."""
        return self._call("hipModuleLoadData", handle, image)

    def module_unload(self, module: int) -> int:
        """Unloads a module."""
        return self._call("hipModuleUnload", module)

    def function_get(self, module: int, name: int, handle: int) -> int:
        """Looks a kernel up; `name` is the address of its name."""
        return self._call("hipModuleGetFunction", handle, module, name)

    def stream_create(self, handle: int) -> int:
        """Creates a stream with HIP's default flags."""
        return self._call("hipStreamCreate", handle)

    def stream_destroy(self, stream: int) -> int:
        """Destroys a stream."""
        return self._call("hipStreamDestroy", stream)
