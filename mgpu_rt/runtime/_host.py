"""Installs a runtime in place of the C library's functions. _begin.py calls `start` if
MGPU_RT_RUNTIME is set; Python programs call `intercept`."""

from __future__ import annotations

import atexit
import contextlib
import io
import os
import shlex
import site
import sys
import threading
from collections.abc import Iterator
from typing import Any, ClassVar

import mgpu_rt
from mgpu_rt import _loading
from mgpu_rt._errors import HipError
from mgpu_rt._runtime import lib
from mgpu_rt.runtime import _adapters, _ending, _library
from mgpu_rt.runtime._base import Runtime


class _State:
    runtime: Runtime | None = None  # that answers
    replaced: ClassVar[list[str]] = []  # the functions that call the class
    inside: ClassVar[list[Runtime]] = []  # MGPU_RT_RUNTIME's, then those of each `with`
    lock = threading.RLock()


# ---- exceptions ----


def _fail(function: str, error: BaseException) -> None:
    """Handles an exception that a method has raised. A HipError with an error code makes the call
    fail. After any other exception, the program ends if MGPU_RT_RUNTIME named the runtime. A `with`
    block instead raises the exception at the end of the block."""
    if isinstance(error, HipError) and error.code:
        try:
            return _library.report(error.call, error.code)
        except BaseException as wrong:  # HIP could not have such an error
            error = wrong
    if function == "end":
        return _ending.end_by(lib.change_status, error)
    if lib.ends_program:
        _ending.end_by(lib.end_program, error)
    # The program's calls now go to the library's functions, until the program leaves the `with`
    # block.
    with _State.lock:
        if _State.runtime is not None:
            _State.runtime._error = error
            remove()
    return None


# ---- in place ----


def install(runtime: Runtime) -> None:
    """Installs a runtime in place of the library's functions, or of an earlier runtime. Raises
    TypeError, or an exception that a property of the runtime raises. After an exception, the
    earlier runtime stays installed."""
    if not hasattr(runtime, "_kernels"):
        raise TypeError(f"{runtime!r} is no Runtime whose __init__ calls super().__init__()")
    _adapters.refuse_misspelt(type(runtime))
    with _State.lock:
        _library.connect()
        answers = _adapters.answers(runtime, _fail)
        remove()
        _State.runtime = runtime
        for answer in answers:
            _adapters.install(*answer)
        for kind, names in (
            ("note", _adapters.noted(runtime)),
            ("enter", _adapters.overridden(runtime)),
        ):
            for name in names:
                _State.replaced.append(name)
                _library.replace(name, kind)


def remove() -> None:
    """Restores the library's functions. A call that has already entered the runtime finishes in the
    runtime."""
    with _State.lock:
        while _State.replaced:
            _library.restore(_State.replaced.pop())
        _State.runtime = None


@contextlib.contextmanager
def intercept(runtime: Runtime) -> Iterator[Runtime]:
    """Routes this process's mgpu* calls through your runtime during a `with` statement.

        with mgpu_rt.intercept(mgpu_rt.hooks.Trace()):
            lowered_function(...)

    On all threads the library calls the methods that the runtime's class overrides. Load modules
    and libraries within the `with` statement: a runtime knows a kernel's arguments only if it
    saw the load of the module. In this time the library builds no graph, and replays of graphs
    bypass the runtime. At the end the previous runtime is current again. If a method raises an
    exception other than HipError, the library itself handles all later calls. The end of the `with`
    statement then raises this exception. Raises TypeError if `runtime` is not a Runtime, and
    RuntimeError under `mgpu-rt check`, which examines the calls that the runtime would answer.
    """
    if os.environ.get("MGPU_RT_CHECK"):  # its functions would not be called again
        raise RuntimeError(
            "mgpu-rt check examines the calls that mgpu_rt.intercept answers: leave the `with` out "
            "under check"
        )
    atexit.register(remove)  # no call may enter an interpreter that has ended
    with _State.lock:
        install(runtime)
        _State.inside.append(runtime)
    try:
        yield runtime
    finally:
        _leave(runtime)


def _leave(runtime: Runtime) -> None:
    """Ends the runtime of a `with` block that the program leaves. If `with` blocks are still
    active, installs the runtime of the block that began last. Threads may leave their `with` blocks
    in any order."""
    with _State.lock:
        _State.inside.remove(runtime)
        if _State.runtime is runtime:
            remove()
    errors: list[BaseException] = []
    try:
        _adapters.nothing(runtime.end())
    except BaseException as error:
        errors.append(error)
    with _State.lock:
        if _State.runtime is None and _State.inside:
            install(_State.inside[-1])
        if runtime._error is not None:
            errors.insert(0, runtime._error)
            runtime._error = None
        lost, lib.lost = lib.lost, 0
    if errors:
        raise errors[0]
    if lost:
        raise RuntimeError("a method has failed, and Python could not say how (stderr says more)")


# ---- MGPU_RT_RUNTIME ----


def _settings(kind: type, text: str) -> dict[str, Any]:
    """Returns the settings after the question mark of MGPU_RT_RUNTIME, each converted to its class
    attribute's type. Raises ValueError."""
    found = {}
    for word in shlex.split(text):
        name, _, value = word.partition("=")
        default = getattr(kind, name, None)
        if name.startswith("_") or default is None or callable(default):
            raise ValueError(f"{kind.__name__} has no setting '{name}'")
        convert = _truth if isinstance(default, bool) else type(default)
        try:
            found[name] = convert(value)
        except (KeyError, ValueError):
            wanted = type(default).__name__
            raise ValueError(f"the setting {name}={value} is not of type {wanted}") from None
    return found


def _truth(word: str) -> bool:
    return {"on": True, "off": False}[word]


def _named_paths() -> list[str]:
    return [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]


def _search_named_paths() -> None:
    """Adds the folders of PYTHONPATH, which an isolated interpreter ignores, after Python's own
    modules and before installed packages."""
    packages = {*site.getsitepackages(), site.getusersitepackages()}
    at = next((i for i, path in enumerate(sys.path) if path in packages), len(sys.path))
    sys.path[at:at] = map(os.path.abspath, _named_paths())


def make(wanted: str) -> Runtime:
    """Creates the runtime that MGPU_RT_RUNTIME names. Commas separate the classes, and each class
    calls the next class. Settings may follow after a question mark. Raises the exceptions that
    occur while a class is loaded or the runtime is created."""
    names, _, settings = wanted.partition("?")
    paths = _named_paths()
    with contextlib.suppress(OSError):  # the current folder was removed
        paths.append(os.getcwd())
    kinds = [_loading.load_class(name.strip(), paths) for name in names.split(",")]
    for kind in kinds:
        if not (isinstance(kind, type) and issubclass(kind, Runtime)):
            raise TypeError(f"{kind!r} is not a class that derives from mgpu_rt.runtime.Runtime")
    whole = kinds[0] if len(kinds) == 1 else type("Runtimes", tuple(kinds), {})
    given = _settings(whole, settings)
    # Settings are attributes of a class, because a user's __init__ may not accept arguments.
    return type(whole.__name__, (whole,), given)() if given else whole()


class _Nowhere(io.TextIOBase):
    """Replaces a closed stdout or stderr, and discards the text. print(file=None) would write a
    text for stderr to stdout."""

    def write(self, text: str) -> int:
        return len(text)


def _open_streams() -> None:
    """Makes stdout write each line at once, and replaces a closed stdout or stderr."""
    sys.stdout, sys.stderr = sys.stdout or _Nowhere(), sys.stderr or _Nowhere()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)


def _end(runtime: Runtime, process: int) -> None:
    """Ends the runtime of a Python program. In a forked child, only restores the library's
    functions."""
    remove()
    if os.getpid() == process:
        try:
            _adapters.end(runtime)()
        except BaseException as error:
            _fail("end", error)


def start(wanted: str, owned: bool, version: str, library: str) -> None:
    """Creates and installs the runtime that MGPU_RT_RUNTIME names. csrc/python/host.c calls
    `start` once, through _begin.py. `owned`: the interpreter exists only for the runtime.
    `library`: the file of the library. If the runtime cannot be created, prints one line with the
    reason, and ends the program."""
    lib.ends_program = True
    _library.disconnect()
    try:
        if version != mgpu_rt.__version__:
            raise ImportError(
                f"the package has version {mgpu_rt.__version__}, but the library has version "
                f"{version}"
            )
        _library.connect(library)
        if owned:
            _search_named_paths()
            _open_streams()
        runtime = make(wanted)
        install(runtime)
        _State.inside.append(runtime)
        if not owned:  # the interpreter has ended when the library's exit handlers run
            atexit.register(_end, runtime, os.getpid())
    except BaseException as error:
        named = os.environ.get("MGPU_RT_RUN_OPTIONS") or f"MGPU_RT_RUNTIME={wanted}"
        why = SystemExit(f"mgpu_rt: {named}: {_loading.describe(error)}")
        _ending.end_by(lib.end_program, why)
