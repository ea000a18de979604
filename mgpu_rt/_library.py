"""The C library in a Python process: its path, and its functions through cffi."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import operator
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from mgpu_rt import _abi, _layout, _record, _record_json
from mgpu_rt._errors import HipError


def path() -> str:
    """Returns the path of the library. Raises FileNotFoundError if the library was not built."""
    library = _layout.PREFIX / "lib" / _layout.LIBRARY
    if not library.exists():
        raise FileNotFoundError(f"{library} was not built: run `make` in {_layout.CHECKOUT}")
    return str(library)


def why_not_loaded(error: OSError) -> str:
    """Returns the reason why the loader refuses the library, and the remedy."""
    text = str(error)
    anew = "python -m pip install --force-reinstall --no-binary mgpu_rt mgpu_rt"
    if "GLIBC_" in text:
        return f"this system's C library is too old for it ({text}): compile it here: {anew}"
    if "wrong ELF class" in text or "invalid ELF header" in text or "machine" in text:
        return f"it was made for another kind of machine ({text}): compile it here: {anew}"
    return f"the loader says: {text}"


@functools.cache
def declarations() -> Any:
    """Returns cffi's object with the declarations of the library and of C's `free`. Parsing takes
    30 ms, once in a process."""
    from cffi import FFI  # not needed for a path, nor by the command

    ffi = FFI()
    ffi.cdef(_abi.cdef())
    ffi.cdef("void free(void *);")
    return ffi


class Life(NamedTuple):
    """The lifetime of a library object. The lifetime ends with the object's process, or with a
    reset of the object's device."""

    process: int
    epoch: int | None  # None: the object survives a reset


class RuntimeLibrary:
    """The functions of the library. Each function of the ABI is an attribute:
    `library.mgpuStreamCreate()`.

    The functions use cffi's pointers, which `library.ffi` creates. As a pointer, the functions also
    accept an int, such as NumPy's `array.ctypes.data`, or None for a null pointer.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.ffi = declarations()
        try:
            self.native = self.ffi.dlopen(path)
        except OSError as error:
            raise OSError(f"{path} cannot be loaded: {why_not_loaded(error)}") from None
        self._thread = threading.local()
        self._asked: list[Any] = []  # C's callbacks; a thread may be in one that was replaced

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("mgpu") and name != "free":
            raise AttributeError(name)
        function = getattr(self.native, name)
        if not name.startswith("mgpu_rt_"):
            function = _taking_numbers(self.ffi, function)
        self.__dict__[name] = function  # a later access finds the function there
        return function

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(name for name in dir(self.native) if name.startswith("mgpu"))]

    def __repr__(self) -> str:
        return f"<mgpu_rt {self.version()} at {self.path}>"

    def stats(self) -> dict[str, Any]:
        """Returns the statistics so far, as docs/statistics.md describes them.

        Calls, times and hits are None if neither MGPU_RT_STATS nor MGPU_RT_TRACE was set at the
        first call.
        """
        return _record_json.statistics(self._recording())

    def _recording(self) -> _record.Recording:
        size = self.ffi.new("size_t *")
        content = self.native.mgpu_rt_record(size)
        if not content:
            raise MemoryError("mgpu_rt_record")
        try:
            return _record.Recording(self.ffi.buffer(content, size[0])[:])
        finally:
            self.native.free(content)

    def empty_cache(self) -> int:
        """Releases all cached objects that are not in use; returns how many."""
        return self.native.mgpu_rt_empty_cache()

    def life(self) -> Life:
        """Returns the lifetime of an object that the library has just created on the current
        device."""
        return Life(os.getpid(), self.native.mgpu_rt_epoch(-1))

    def lasts(self, life: Life) -> bool:
        """Returns False if an object's process or device's epoch is over."""
        if life.process != os.getpid():
            return False
        return life.epoch is None or life.epoch == self.native.mgpu_rt_epoch(life.epoch // 2)

    def give_back(self, life: Life, function: Callable[..., object], *arguments: Any) -> None:
        """Calls a function that releases an object, unless the object's lifetime is over. A
        finalizer may call this method while its thread builds a graph. The release is then delayed
        until the graph's end, so that the release does not become part of the graph."""
        later = getattr(self._thread, "later", None)
        if later is not None and life.process == os.getpid():
            later.append((life, function, arguments))
        elif self.lasts(life):
            function(*arguments)

    def finalize(
        self, owner: object, function: Callable[..., object], *arguments: Any
    ) -> weakref.finalize[Any, Any]:
        """Releases a new object of the library by `function` once `owner` is deleted. Releases
        nothing at exit, because other threads may use the object then."""
        end = weakref.finalize(owner, self.give_back, self.life(), function, *arguments)
        end.atexit = False
        return end

    @contextlib.contextmanager
    def giving_back_later(self) -> Iterator[None]:
        """Delays this thread's releases until the end of the `with` statement."""
        outer = getattr(self._thread, "later", None)
        mine: list[tuple[Life, Callable[..., object], tuple[Any, ...]]] = []
        self._thread.later = mine
        try:
            yield
        finally:
            self._thread.later = outer
            self._give_back_all(mine)

    def _give_back_all(self, waiting: list[Any]) -> None:
        try:
            while waiting:
                life, function, arguments = waiting.pop(0)
                self.give_back(life, function, *arguments)
        finally:
            if waiting:  # a signal handler has raised an exception
                self._give_back_all(waiting)

    def on_out_of_memory(self, make_room: Callable[[int, int], object] | None) -> None:
        """Makes mgpuMemAlloc call `make_room(device, bytes)` if device memory is exhausted. The
        library then repeats the allocation once. `make_room=None` removes the function.

        The function runs on the thread that allocates, and must not change this thread's device.
        Several threads may run the function at the same time. If `make_room` raises an exception,
        the exception is printed, and the library still repeats the allocation. Raises TypeError if
        `make_room` cannot be called.
        """
        if make_room is not None and not callable(make_room):
            raise TypeError(f"{make_room!r} cannot be called: on_out_of_memory takes a function")
        if make_room is None:
            self.native.mgpu_rt_on_out_of_memory(self.ffi.NULL)
            return

        def ask(device: int, size: int) -> None:
            make_room(device, size)

        self._asked.append(self.ffi.callback("void(int, size_t)", ask))
        # The library must not call Python after the interpreter has ended.
        atexit.register(self.native.mgpu_rt_on_out_of_memory, self.ffi.NULL)
        self.native.mgpu_rt_on_out_of_memory(self._asked[-1])

    @property
    def chosen_stream(self) -> int | None:
        """Returns the stream that this thread chose through this object; None if the library's own
        streams are used."""
        return getattr(self._thread, "stream", None)

    def choose_stream(self, stream: int | None) -> None:
        """Makes mgpuStreamCreate on this thread return `stream`, a hipStream_t, until None ends its
        use. The caller owns the stream, and must not destroy it before. If `stream` is 0, Python's
        launches use the null stream, but mgpuStreamCreate returns the library's own streams."""
        if self.native.mgpu_rt_use_stream(self.ffi.cast("hipStream_t", stream or 0)) != 0:
            raise MemoryError("mgpu_rt_use_stream")
        self._thread.stream = stream

    def take_error(self) -> str | None:
        """Returns HIP's name for the error of the last mgpu* call that failed on this thread, and
        clears the error. Returns None if no call has failed since the error was last cleared."""
        name = self.native.mgpu_rt_take_error()
        return self.ffi.string(name).decode() if name else None

    def check(self, failure: str) -> None:
        """Raises HipError, whose text begins with `failure`, if a call on this thread has
        failed."""
        if name := self.take_error():
            raise HipError("", 0, name, f"{failure}: {name} (stderr says more)")

    def version(self) -> str:
        """Returns the version of the library, "major.minor.patch"."""
        return self.ffi.string(self.native.mgpu_rt_version()).decode()


def _taking_numbers(ffi: Any, function: Any) -> Callable[..., Any]:
    """A function of the library that also accepts addresses and handles as numbers."""

    def pointer(kind: Any, argument: Any) -> Any:
        if argument is None:
            return ffi.NULL
        if isinstance(argument, ctypes.c_void_p):
            argument = argument.value or 0
        try:
            number = operator.index(argument)
        except TypeError:
            return argument  # cffi reports the fault
        if not 0 <= number < 1 << 64:
            raise ValueError(f"{number} is not an address")
        return ffi.cast(kind, number)

    def call(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except TypeError:  # the error is an argument's, so the function was not called
            kinds = ffi.typeof(function).args
            if len(kinds) != len(arguments):
                raise
        pairs = zip(kinds, arguments, strict=True)
        return function(*(pointer(k, a) if k.kind == "pointer" else a for k, a in pairs))

    return call


@functools.cache
def load() -> RuntimeLibrary:
    """Loads the library once and returns it. Raises FileNotFoundError if the library was not
    built."""
    return RuntimeLibrary(path())
