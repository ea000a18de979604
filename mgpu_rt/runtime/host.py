"""Puts a runtime in place of the C library's functions, and takes it away again.

csrc/runtime/python/host.c calls `start` for MGPU_RT_RUNTIME; `intercept` is for Python programs.
Only functions whose methods a class overrides are taken, and what it needs to know of kernels.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import shlex
import site
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import mgpu_rt
from mgpu_rt import loading
from mgpu_rt._runtime import ffi, lib
from mgpu_rt.runtime.base import METHODS, Runtime
from mgpu_rt.runtime.hip import HipError
from mgpu_rt.runtime.objects import Image, Launch

_EXPORTS = (
    "mgpu_rt_native",
    "mgpu_rt_intercept",
    "mgpu_rt_report",
    "mgpu_rt_hip_path",
    "mgpu_rt_image_name",
)


class _State:
    """The runtimes that are in place in this process."""

    connected = False
    runtime: Runtime | None = None  # that answers
    inside: ClassVar[list[Runtime]] = []  # all that are in a `with`, the last one last
    failed: Runtime | None = None  # that has raised `error`
    ends = False  # an exception ends the program: nobody could catch it
    error: BaseException | None = None
    lock = threading.RLock()


# ---- exceptions ----


def _failed(_kind: Any, error: BaseException, trace: Any) -> None:
    """A method has raised; the call returns 0."""
    error = error.with_traceback(trace)  # cffi hands it over apart
    if isinstance(error, HipError):
        lib.report(error.call.encode(), error.code)
    elif _State.ends:
        _end_program(error)
    else:
        # The library serves the program from here until it leaves the `with`.
        with _State.lock:
            if _State.error is None:
                _State.failed, _State.error = _State.runtime, error
            remove()


def _end_program(error: BaseException) -> None:
    status = 1
    if isinstance(error, SystemExit):
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    else:
        traceback.print_exception(type(error), error, error.__traceback__)
    with contextlib.suppress(Exception):
        sys.stderr.flush()
        sys.stdout.flush()
    lib.end_program(status)


# ---- from functions to methods ----


def _load(runtime: Runtime) -> Callable[..., int]:
    def load(address: int, _size: int) -> int:
        image = Image.at(address)
        module = runtime.module_load(image)
        runtime._loaded(module, image)
        return module

    return load


def _load_jit(runtime: Runtime) -> Callable[..., int]:
    def load(address: int, level: int, _size: int) -> int:
        image = Image.at(address)
        module = runtime.module_load_jit(image, level)
        runtime._loaded(module, image)
        return module

    return load


def _get_function(runtime: Runtime) -> Callable[..., int]:
    def get(module: int, name: Any) -> int:
        text = ffi.string(name).decode(errors="surrogateescape") if name else ""
        function = runtime.module_get_function(module, text)
        runtime._found(function, module, text)
        return function

    return get


def _launch(runtime: Runtime) -> Callable[..., None]:
    serve = runtime.launch_kernel

    def launch(function, x, y, z, bx, by, bz, shared, stream, params, extra, *_late) -> None:
        serve(Launch(runtime, function, (x, y, z), (bx, by, bz), shared, stream, params, extra))

    return launch


def _launch_symbol(runtime: Runtime) -> Callable[..., None]:
    def launch(symbol, x, y, z, bx, by, bz, shared, stream, params, extra, *_late) -> None:
        sizes = (x, y, z), (bx, by, bz), shared, stream, params, extra
        runtime.launch_kernel(Launch(runtime, symbol, *sizes, symbol=True))

    return launch


def _launch_cooperative(runtime: Runtime) -> Callable[..., None]:
    def launch(
        function, x, y, z, cx, cy, cz, bx, by, bz, shared, stream, params, extra, *_late
    ) -> None:
        sizes = (x, y, z), (bx, by, bz), shared, stream, params, extra
        cluster = (cx, cy, cz) if cx or cy or cz else None
        runtime.launch_kernel(Launch(runtime, function, *sizes, cluster, True))

    return launch


def _launch_cluster(runtime: Runtime) -> Callable[..., None]:
    def launch(
        function, cx, cy, cz, x, y, z, bx, by, bz, shared, stream, params, extra, *_late
    ) -> None:
        sizes = (x, y, z), (bx, by, bz), shared, stream, params, extra
        runtime.launch_kernel(Launch(runtime, function, *sizes, (cx, cy, cz)))

    return launch


def _allocate(runtime: Runtime) -> Callable[..., int]:
    # Programs of before LLVM 18 pass no flag, so something stands there; nor a null stream.
    serve = runtime.mem_alloc
    return lambda size, stream, shared: serve(size, stream, bool(shared and not stream))


#: Functions whose methods take something else than the ABI's arguments.
_ADAPTERS: dict[str, Callable[[Runtime], Callable[..., Any]]] = {
    "mgpuModuleLoad": _load,
    "mgpuModuleLoadJIT": _load_jit,
    "mgpuModuleGetFunction": _get_function,
    "mgpuLaunchKernel": _launch,
    "mgpuLaunchKernelCooperative": _launch_cooperative,
    "mgpuLaunchClusterKernel": _launch_cluster,
    "mgpuLaunchKernelRT": _launch_symbol,
    "mgpuMemAlloc": _allocate,
}

#: The methods that have to see a call so that a launch knows its kernel.
_KERNELS = ("mgpuModuleLoad", "mgpuModuleLoadJIT", "mgpuModuleGetFunction")


def taken(runtime: Runtime) -> list[str]:
    """The functions that a runtime is asked for, "end" among them."""
    names = [name for name, method in METHODS.items() if _overrides(runtime, method)]
    if runtime.knows_kernels and "mgpuLaunchKernel" in names:
        names += [name for name in _KERNELS if name not in names]
    return [*names, *(["end"] if _overrides(runtime, "end") else [])]


def _overrides(runtime: Runtime, method: str) -> bool:
    """By its class, or by the object itself."""
    function = getattr(getattr(runtime, method), "__func__", None)
    return function is not getattr(Runtime, method)


# ---- in place ----


def _connect(addresses: tuple[int, ...] | None = None) -> None:
    """Binds to the library in this process: the one that has called, that the program sees, or that
    belongs to this package."""
    if _State.connected:
        return
    if addresses is None:
        library = ctypes.CDLL(None)
        if not hasattr(library, _EXPORTS[0]):
            library = ctypes.CDLL(mgpu_rt.library_path())
        found = [ctypes.cast(getattr(library, name), ctypes.c_void_p) for name in _EXPORTS]
        addresses = tuple(pointer.value or 0 for pointer in found)
    lib.use_library(*addresses)
    _State.connected = True


def hip_path() -> str:
    """The file of the HIP library that is open; "" if there is none."""
    _connect()
    if not ffi.string(lib.hip_path()):
        lib.mgpuMemFree(0, 0)  # the first call opens it
    return os.fsdecode(ffi.string(lib.hip_path()))


def install(runtime: Runtime) -> None:
    """Puts a runtime in place of the library's functions, and of the runtime that was there."""
    with _State.lock:
        _connect()
        remove()
        _State.runtime = runtime
        for name in taken(runtime):
            if name == "end":
                method: Callable[..., Any] = _end(runtime)
            elif name in _ADAPTERS:
                method = _ADAPTERS[name](runtime)
            else:
                method = getattr(runtime, METHODS[name])
            ffi.def_extern(name=f"on_{name}", onerror=_failed)(method)
            lib.intercept(name.encode(), True)


def _end(runtime: Runtime) -> Callable[[], None]:
    def end() -> None:
        runtime.end()
        sys.stdout.flush()
        sys.stderr.flush()

    return end


def remove() -> None:
    """The library's functions answer again. Calls under way end as they began."""
    with _State.lock:
        if _State.runtime is not None:
            for name in taken(_State.runtime):
                lib.intercept(name.encode(), False)
        _State.runtime = None


@contextlib.contextmanager
def intercept(runtime: Runtime) -> Iterator[Runtime]:
    """mgpu_rt.intercept, which describes it."""
    if not isinstance(runtime, Runtime):
        raise TypeError(
            f"{runtime!r} is no Runtime: pass an object of a class that derives from it"
        )
    _check_made(runtime)
    atexit.register(remove)  # nothing may enter an interpreter that is over
    with _State.lock:
        if _State.runtime is not None and not _State.inside:
            _State.inside.append(_State.runtime)  # MGPU_RT_RUNTIME's
        _State.inside.append(runtime)
        install(runtime)
    try:
        yield runtime
    finally:
        _leave(runtime)


def _leave(runtime: Runtime) -> None:
    """Ends one that is inside of a `with`; the last of those that remain answers, in whichever
    order threads leave."""
    with _State.lock:
        _State.inside.remove(runtime)
        if _State.runtime is runtime:
            remove()
    runtime.end()
    with _State.lock:
        if _State.runtime is None and _State.inside:
            install(_State.inside[-1])
        failed, error = _State.failed, _State.error
        if failed is runtime:
            _State.failed = _State.error = None
    if failed is runtime and error is not None:
        raise error


# ---- MGPU_RT_RUNTIME ----


def _settings(text: str) -> dict[str, str]:
    """The words of MGPU_RT_RUNTIME_SETTINGS. Raises ValueError."""
    words = shlex.split(text)
    wrong = [word for word in words if "=" not in word]
    if wrong:
        raise ValueError(f"MGPU_RT_RUNTIME_SETTINGS: '{wrong[0]}' is not of the form name=value")
    return {name: value for name, _, value in (word.partition("=") for word in words)}


def _converted(kind: type, name: str, value: str) -> Any:
    """A setting as its class attribute is typed."""
    if name.startswith("_") or not hasattr(kind, name) or callable(getattr(kind, name)):
        raise ValueError(f"MGPU_RT_RUNTIME_SETTINGS: {kind.__name__} has no setting '{name}'")
    default = getattr(kind, name)
    if isinstance(default, bool):
        return value.lower() in ("1", "on", "true", "yes")
    return type(default)(value) if isinstance(default, (int, float)) else value


def _named_paths() -> list[str]:
    """The folders of PYTHONPATH."""
    return [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]


def _search_named_paths() -> None:
    """Makes an interpreter search PYTHONPATH, which it ignored at its start. Installed packages
    come behind it, as Python has it. Python's own modules come first."""
    packages = {*site.getsitepackages(), site.getusersitepackages()}
    at = next((i for i, path in enumerate(sys.path) if path in packages), len(sys.path))
    sys.path[at:at] = map(os.path.abspath, _named_paths())


def make(names: str, settings: str = "") -> Runtime:
    """The runtime that MGPU_RT_RUNTIME names: classes with commas between, each of which passes on
    to the next. Raises what finding or making it raises."""
    paths = _named_paths()
    with contextlib.suppress(OSError):  # somebody has removed it
        paths.append(os.getcwd())
    kinds = [loading.load_class(name.strip(), paths) for name in names.split(",")]
    for kind in kinds:
        if not (isinstance(kind, type) and issubclass(kind, Runtime)):
            raise TypeError(f"{kind!r} is no class that derives from mgpu_rt.runtime.Runtime")
    whole = kinds[0] if len(kinds) == 1 else type("Runtimes", tuple(kinds), {})
    given = {name: _converted(whole, name, value) for name, value in _settings(settings).items()}
    # As attributes of a class, since an __init__ of the user's need not take them.
    runtime = type(whole.__name__, (whole,), given)() if given else whole()
    _check_made(runtime)
    return runtime


def _check_made(runtime: Runtime) -> None:
    """Raises TypeError if a class has kept Runtime's own __init__ from running."""
    if not runtime._is_made:
        kinds = type(runtime).__mro__
        own = [kind.__name__ for kind in kinds[: kinds.index(Runtime)] if "__init__" in vars(kind)]
        raise TypeError(f"call super().__init__() in the __init__ of {' and of '.join(own)}")


def start(names: str, owned: bool, version: str, addresses: tuple[int, ...]) -> None:
    """Called once by csrc/runtime/python/host.c. `owned`: the interpreter is there only for this.
    Raises SystemExit, after a line that says why, if there will be no runtime."""
    _State.ends = True
    _State.connected = False
    try:
        if version != mgpu_rt.__version__:
            raise ImportError(f"the package is {mgpu_rt.__version__} and the library {version}")
        _connect(addresses)
        if owned:
            _search_named_paths()
            sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
        else:
            atexit.register(remove)
        settings = os.environ.get("MGPU_RT_RUNTIME_SETTINGS", "")
        install(make(names, settings))
    except BaseException as error:
        print(f"mgpu_rt: MGPU_RT_RUNTIME={names}: {loading.describe(error)}", file=sys.stderr)
        sys.stderr.flush()
        lib.end_program(1)
