"""Adapts the functions of the ABI to a runtime's methods, and converts the arguments."""

from __future__ import annotations

import difflib
import inspect
import sys
from collections.abc import Callable
from typing import Any

from mgpu_rt._runtime import ffi, lib
from mgpu_rt.runtime._base import METHODS, Runtime
from mgpu_rt.runtime._objects import Image, Launch


def _load(runtime: Runtime, name: str) -> Callable[..., int]:
    serve = getattr(runtime, METHODS[name])

    def load(address: int, *options: int) -> int:
        image = Image.at(address)
        module = serve(image, *options[:-1])  # without the size
        if runtime._images.get(module) is not image:
            runtime._loaded(module, image)
        return module

    return load


def _get_function(runtime: Runtime, _name: str) -> Callable[..., int]:
    def get(module: int, name: Any) -> int:
        text = _text(name)
        function = runtime.module_get_function(module, text)
        runtime._found(function, module, text)
        return function

    return get


def _text(name: Any) -> str:
    return ffi.string(name).decode(errors="surrogateescape") if name else ""


#: The names of functions that C knows (csrc/python/known.h), which stay for as long as the process.
_names: dict[bytes, Any] = {}


def _notes(runtime: Runtime) -> tuple[Callable[..., int], Callable[..., int]]:
    """Returns the functions that C calls after it has loaded a module, and found a kernel."""
    who = lib.new_knower()

    def know(handle: int, module: int, content: bytes, name: Any) -> None:
        lib.know(who, handle, module, ffi.from_buffer(content), len(content), name)

    def loaded(module: int, address: int) -> int:
        image = Image.at(address)
        runtime._loaded(module, image)
        know(module, module, image.content, ffi.NULL)
        return 1

    def found(function: int, module: int, name: Any) -> int:
        runtime._found(function, module, _text(name))
        image = runtime._images.get(module)
        if name and image is not None:
            text = ffi.string(name)
            know(function, module, image.content, _names.setdefault(text, ffi.new("char[]", text)))
        return 1

    return loaded, found


def _launch(runtime: Runtime, failed: Callable[..., Any]) -> Callable[[Launch], None]:
    """Returns the function that gets each launch of the program from C."""
    serve = runtime.launch_kernel

    def launch(made: Launch) -> None:
        made.runtime = runtime
        try:
            answer = serve(made)
            if answer is not None:
                nothing(answer)
        except BaseException as error:
            failed(type(error), error, error.__traceback__)

    return launch


def nothing(answer: object) -> int:
    """Returns 1, which tells C that a method without a result has succeeded. Raises TypeError if
    the method has returned a value, such as a coroutine or a generator that has not run."""
    if answer is not None:
        raise TypeError(f"the method returned {answer!r}, but must return nothing")
    return 1


def _without_result(method: Callable[..., Any]) -> Callable[..., int]:
    return lambda *arguments: nothing(method(*arguments))


def end(runtime: Runtime, _name: str = "end") -> Callable[[], int]:
    def method() -> int:
        answer = runtime.end()
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        return nothing(answer)

    return method


def _allocate(runtime: Runtime, _name: str) -> Callable[..., int]:
    # Programs from before LLVM 18 do not pass `shared`, so its value is garbage; those programs
    # never pass a null stream.
    serve = runtime.mem_alloc
    return lambda size, stream, shared: serve(size, stream, bool(shared and not stream))


#: Functions of the ABI whose methods take different arguments.
_ADAPTERS: dict[str, Callable[[Runtime, str], Callable[..., Any]]] = {
    "end": end,
    "mgpuModuleLoad": _load,
    "mgpuModuleLoadJIT": _load,
    "mgpuModuleGetFunction": _get_function,
    "mgpuMemAlloc": _allocate,
}

#: The methods of the functions of the ABI, and `end`, which is no function of the ABI.
_ANSWERS = METHODS | {"end": "end"}

#: Functions whose calls tell which kernel a handle denotes. A runtime that overrides launches, but
#: not these functions, is notified of what they have loaded and found.
_KERNELS = ("mgpuModuleLoad", "mgpuModuleLoadJIT", "mgpuModuleGetFunction")


def overridden(runtime: Runtime) -> list[str]:
    """Returns the names of _ANSWERS whose methods a runtime overrides."""
    return [name for name, method in _ANSWERS.items() if _overrides(runtime, method)]


def noted(runtime: Runtime) -> list[str]:
    """Returns the names of _KERNELS whose results a runtime needs and does not answer itself."""
    own = overridden(runtime)
    return [name for name in _KERNELS if name not in own] if "mgpuLaunchKernel" in own else []


def install(
    extern: str, method: Callable[..., Any], handler: Callable[..., Any], lost: Any
) -> None:
    """Makes the function `extern` of csrc/python/runtime.h call a method. `handler` handles the
    method's exceptions. If the handler also fails, the C code gets `lost` as the result."""
    if extern == "launch":
        Launch._answer(method)
    else:
        ffi.def_extern(f"on_{extern}", error=lost, onerror=handler)(method)


@ffi.def_extern()
def on_thread() -> int:
    """Makes cffi keep Python's state of the thread (csrc/python/launches.h)."""
    return 1


def refuse_misspelt(kind: type) -> None:
    """Raises TypeError for a public method of the user's that nothing calls, and whose name
    resembles one that is called. Such a hook would do nothing, without a word."""
    called = {*_ANSWERS.values(), "on_launch"}
    shipped = [each for each in kind.__mro__ if each.__module__.partition(".")[0] == "mgpu_rt"]
    known = {name for each in shipped for name in vars(each)}
    for each in kind.__mro__:
        own = {} if each in shipped else vars(each)
        for name in own.keys() - known:
            if not callable(own[name]) or not (near := _meant(name, called)):
                continue
            advice = f"do you mean {near}? If not, begin its name with an underscore"
            if near == name:
                advice = "derive the class from mgpu_rt.hooks.LaunchHook"
            raise TypeError(f"nothing calls {each.__name__}.{name}: {advice}")


def _meant(name: str, called: set[str]) -> str:
    return next(iter(difflib.get_close_matches(name, called, 1, cutoff=0.9)), "")


#: Called for a function whose method has raised an exception.
Fail = Callable[[str, BaseException], None]


def answers(runtime: Runtime, fail: Fail) -> list[tuple[Any, ...]]:
    """Returns the arguments of `install` for each method that a runtime overrides."""
    found: dict[str, tuple[Any, ...]] = {}
    for name in overridden(runtime):
        method = getattr(runtime, _ANSWERS[name])
        if not callable(method):
            kind = type(runtime).__name__
            raise TypeError(f"{kind}.{_ANSWERS[name]} is not a method: {method!r}")
        extern, result = name, "void"
        if METHODS.get(name) == "launch_kernel":  # one for all functions that launch
            extern = "launch"
        else:
            result = "void" if name == "end" else ffi.typeof(getattr(lib, name)).result.cname
            if name in _ADAPTERS:
                method = _ADAPTERS[name](runtime, name)
            elif result == "void":
                method = _without_result(method)
        failed, lost = _results(result)
        handler = _handler(runtime, name, failed, fail)
        if extern == "launch":
            method = _launch(runtime, handler)
        found[extern] = (extern, method, handler, lost)
    if noted(runtime):
        loaded, looked_up = _notes(runtime)
        for extern, method, name in (
            ("loaded", loaded, _KERNELS[0]),
            ("found", looked_up, _KERNELS[2]),
        ):
            found[extern] = (extern, method, _handler(runtime, name, 1, fail), 0)
    return list(found.values())


def _results(kind: str) -> tuple[Any, Any]:
    """Returns two results for C: for a failed call, and for a call whose exception handler also
    fails (runtime.h)."""
    if kind == "void":
        return 1, 0
    return 0, lib.LOST % 2**64 if kind == "uintptr_t" else lib.LOST


def _handler(runtime: Runtime, function: str, failed: Any, fail: Fail) -> Callable[..., Any]:
    """Returns a handler that reports an exception. The handler returns `failed` as the call's
    result."""

    def handle(_kind: Any, error: BaseException, trace: Any) -> Any:
        if trace is None and isinstance(error, (TypeError, OverflowError)):
            # An exception without a traceback comes from cffi's C code, which could not call the
            # method or convert the method's result.
            method = _ANSWERS[function]
            words = f"{method}{inspect.signature(getattr(Runtime, method))}".replace("'", "")
            error = TypeError(f"{type(runtime).__name__}.{method} does not fit {words}: {error}")
        fail(function, error.with_traceback(trace))  # cffi passes the traceback separately
        return failed

    return handle


def _overrides(runtime: Runtime, method: str) -> bool:
    """Returns True if the runtime's class or the runtime object itself overrides a method."""
    function = getattr(getattr(runtime, method), "__func__", None)
    return function is not getattr(Runtime, method)
