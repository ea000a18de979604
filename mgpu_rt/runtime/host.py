"""Puts a runtime in place of the C library's functions, and takes it away again.

csrc/runtime/python/host.c calls `start` for MGPU_RT_RUNTIME; `intercept` is for Python programs.
Only functions whose methods a class overrides are taken, and what it needs to know of kernels.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import inspect
import io
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
    taken: ClassVar[list[str]] = []  # the functions that it answers
    inside: ClassVar[list[Runtime]] = []  # all that are in a `with`, the last one last
    failed: Runtime | None = None  # that has raised `error`
    error: BaseException | None = None
    lock = threading.RLock()


# ---- exceptions ----


def _fail(error: BaseException) -> None:
    """Handles what a method has raised. HipError is a failed call. Any other exception ends the
    program or leaves the `with`: the program is not to go on without its call."""
    if isinstance(error, HipError):
        try:
            return lib.report(error.call.encode(), error.code)
        except BaseException as wrong:  # it is no error that HIP could have
            error = wrong
    if lib.ends_program:
        _end_program(error)
    # The library serves the program from here until it leaves the `with`.
    with _State.lock:
        if _State.error is None:
            _State.failed, _State.error = _State.runtime, error
        remove()
    return None


def _end_program(error: BaseException) -> None:
    """Ends the process, whatever else goes wrong; with 0 only if the user asks for it."""
    status = 1
    try:
        if not isinstance(error, SystemExit):
            _write(_shown(error))
        elif isinstance(error.code, int):
            status = error.code & 0xFF or int(error.code != 0)
        elif error.code is None:
            status = 0
        else:
            _write(f"{error.code}\n")
        with contextlib.suppress(Exception):
            sys.stdout.flush()  # type: ignore[union-attr]
    finally:
        lib.end_program(status)


def _shown(error: BaseException) -> str:
    """An exception with its traceback, as far as it can be had."""
    try:
        return "".join(traceback.format_exception(error))
    except Exception:
        return f"{type(error).__name__}\n"


def _write(text: str) -> None:
    """Writes to stderr; not at all where it is closed or full."""
    for stream in (sys.stderr, sys.__stderr__):  # the program may have put its own there
        with contextlib.suppress(Exception):
            stream.write(text)  # type: ignore[union-attr]
            return stream.flush()  # type: ignore[union-attr]


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


def _launch(runtime: Runtime) -> Callable[..., int]:
    serve = runtime.launch_kernel

    def launch(function, x, y, z, bx, by, bz, shared, stream, params, extra, *_late) -> int:
        made = Launch(runtime, function, (x, y, z), (bx, by, bz), shared, stream, params, extra)
        return _nothing(serve(made))

    return launch


def _launch_symbol(runtime: Runtime) -> Callable[..., int]:
    def launch(symbol, x, y, z, bx, by, bz, shared, stream, params, extra, *_late) -> int:
        sizes = (x, y, z), (bx, by, bz), shared, stream, params, extra
        return _nothing(runtime.launch_kernel(Launch(runtime, symbol, *sizes, symbol=True)))

    return launch


def _launch_cooperative(runtime: Runtime) -> Callable[..., int]:
    def launch(
        function, x, y, z, cx, cy, cz, bx, by, bz, shared, stream, params, extra, *_late
    ) -> int:
        sizes = (x, y, z), (bx, by, bz), shared, stream, params, extra
        cluster = (cx, cy, cz) if cx or cy or cz else None
        return _nothing(runtime.launch_kernel(Launch(runtime, function, *sizes, cluster, True)))

    return launch


def _launch_cluster(runtime: Runtime) -> Callable[..., int]:
    def launch(
        function, cx, cy, cz, x, y, z, bx, by, bz, shared, stream, params, extra, *_late
    ) -> int:
        sizes = (x, y, z), (bx, by, bz), shared, stream, params, extra
        return _nothing(runtime.launch_kernel(Launch(runtime, function, *sizes, (cx, cy, cz))))

    return launch


def _nothing(answer: object) -> int:
    """Tells C that a method has run that returns nothing. Raises TypeError if it has returned
    something: as a coroutine or a generator it would not have run."""
    if answer is not None:
        raise TypeError(f"the method has returned {answer!r}: it has to return nothing")
    return 1


def _without_result(method: Callable[..., Any]) -> Callable[..., int]:
    return lambda *arguments: _nothing(method(*arguments))


def _end(runtime: Runtime) -> Callable[[], int]:
    def end() -> int:
        answer = runtime.end()
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        return _nothing(answer)

    return end


def _allocate(runtime: Runtime) -> Callable[..., int]:
    # Programs of before LLVM 18 pass no flag, so something stands there; nor a null stream.
    serve = runtime.mem_alloc
    return lambda size, stream, shared: serve(size, stream, bool(shared and not stream))


#: Functions whose methods take something else than the ABI's arguments.
_ADAPTERS: dict[str, Callable[[Runtime], Callable[..., Any]]] = {
    "end": _end,
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


def _answers(runtime: Runtime) -> dict[str, tuple[Callable[..., Any], Callable[..., Any], Any]]:
    """By function: the method that answers, the handler of its exceptions, and the result that
    tells C that not even the handler could run."""
    answers = {}
    for name in taken(runtime):
        method = getattr(runtime, METHODS.get(name, name))
        if not callable(method):
            kind = type(runtime).__name__
            raise TypeError(f"{kind}.{METHODS.get(name, name)} is no method: {method!r}")
        result = "void" if name == "end" else ffi.typeof(getattr(lib, name)).result.cname
        if name in _ADAPTERS:
            method = _ADAPTERS[name](runtime)
        elif result == "void":
            method = _without_result(method)
        failed, lost = _results(result)
        answers[name] = method, _handler(runtime, name, failed), lost
    return answers


def _results(kind: str) -> tuple[Any, Any]:
    """The results of a failed call of this type, and of one whose failure could not be handled
    (build.py)."""
    if kind == "void":
        return 1, 0
    if kind.startswith("struct"):
        return {}, {"offset": lib.LOST}
    return 0, lib.LOST % 2**64 if kind == "uintptr_t" else lib.LOST


def _handler(runtime: Runtime, function: str, failed: Any) -> Callable[..., Any]:
    """Handles an exception, after which the call returns `failed`."""

    def handle(_kind: Any, error: BaseException, trace: Any) -> Any:
        if trace is None and isinstance(error, (TypeError, OverflowError)):
            # No line of the method raised it: it was called, or its result taken, in C.
            method = METHODS.get(function, function)
            words = f"{method}{inspect.signature(getattr(Runtime, method))}".replace("'", "")
            error = TypeError(f"{type(runtime).__name__}.{method} does not fit {words}: {error}")
        _fail(error.with_traceback(trace))  # cffi hands it over apart
        return failed

    return handle


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
    """Puts a runtime in place of the library's functions, and of the runtime that was there. Raises
    TypeError, and what the runtime's properties raise, and leaves all as it was then."""
    with _State.lock:
        _connect()
        answers = _answers(runtime)
        remove()
        _State.runtime = runtime
        for name, (method, handler, lost) in answers.items():
            ffi.def_extern(name=f"on_{name}", error=lost, onerror=handler)(method)
            _State.taken.append(name)
            lib.intercept(name.encode(), True)


def remove() -> None:
    """The library's functions answer again. Calls under way end as they began."""
    with _State.lock:
        while _State.taken:
            lib.intercept(_State.taken.pop().encode(), False)
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
        outer = _State.runtime
        install(runtime)
        if outer is not None and not _State.inside:
            _State.inside.append(outer)  # MGPU_RT_RUNTIME's
        _State.inside.append(runtime)
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
    try:
        _nothing(runtime.end())
    finally:
        with _State.lock:
            if _State.runtime is None and _State.inside:
                install(_State.inside[-1])
            failed, error = _State.failed, _State.error
            if failed is runtime:
                _State.failed = _State.error = None
            lost, lib.lost = lib.lost, 0
    if failed is runtime and error is not None:
        raise error
    if lost:
        raise RuntimeError("a method has failed, and Python could not say how (stderr says more)")


# ---- MGPU_RT_RUNTIME ----


def _settings(text: str) -> dict[str, str]:
    """The words of MGPU_RT_RUNTIME_SETTINGS. Raises ValueError."""
    words = shlex.split(text)
    wrong = [word for word in words if "=" not in word]
    if wrong:
        raise ValueError(f"MGPU_RT_RUNTIME_SETTINGS: '{wrong[0]}' is not of the form name=value")
    return {name: value for name, _, value in (word.partition("=") for word in words)}


_TRUTH = dict.fromkeys(("1", "on", "true", "yes"), True)
_TRUTH |= dict.fromkeys(("0", "off", "false", "no"), False)


def _converted(kind: type, name: str, value: str) -> Any:
    """A setting as its class attribute is typed. Raises ValueError."""
    if name.startswith("_") or not hasattr(kind, name) or callable(getattr(kind, name)):
        raise ValueError(f"MGPU_RT_RUNTIME_SETTINGS: {kind.__name__} has no setting '{name}'")
    default = getattr(kind, name)
    try:
        if isinstance(default, bool):
            return _TRUTH[value.lower()]
        return type(default)(value) if isinstance(default, (int, float)) else value
    except (KeyError, ValueError):
        wanted = type(default).__name__
        raise ValueError(f"MGPU_RT_RUNTIME_SETTINGS: {name}={value} is no {wanted}") from None


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
    """Raises TypeError if a class has kept Runtime's own __init__ from running, and if a method
    would not run when it is called."""
    kinds = type(runtime).__mro__
    kinds = kinds[: kinds.index(Runtime)]
    if not runtime._is_made:
        own = [kind.__name__ for kind in kinds if "__init__" in vars(kind)]
        raise TypeError(f"call super().__init__() in the __init__ of {' and of '.join(own)}")
    for kind in kinds:
        for name, method in vars(kind).items():
            method = getattr(method, "__func__", method)  # of a static or a class method
            if not hasattr(Runtime, name) and name != "on_launch":
                continue
            if inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method):
                raise TypeError(f"{kind.__name__}.{name} is async, and nobody would wait for it")
            if inspect.isgeneratorfunction(method):
                raise TypeError(f"{kind.__name__}.{name} has a yield, so a call would not run it")


class _Nowhere(io.TextIOBase):
    """In place of a stream that is closed, so that print does not take the other one."""

    def write(self, text: str) -> int:
        return len(text)


def _open_streams() -> None:
    """Has an interpreter write what a program sees at once, as the program does."""
    sys.stdout, sys.stderr = sys.stdout or _Nowhere(), sys.stderr or _Nowhere()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)


def start(names: str, owned: bool, version: str, addresses: tuple[int, ...]) -> None:
    """Called once by csrc/runtime/python/host.c. `owned`: the interpreter is there only for this.
    Ends the program, after a line that says why, if there will be no runtime."""
    lib.ends_program = True
    _State.connected = False
    try:
        if version != mgpu_rt.__version__:
            raise ImportError(f"the package is {mgpu_rt.__version__} and the library {version}")
        _connect(addresses)
        if owned:
            _search_named_paths()
            _open_streams()
        else:
            atexit.register(remove)
        settings = os.environ.get("MGPU_RT_RUNTIME_SETTINGS", "")
        install(make(names, settings))
    except BaseException as error:
        why = SystemExit(f"mgpu_rt: MGPU_RT_RUNTIME={names}: {loading.describe(error)}")
        _end_program(why)
