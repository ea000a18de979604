"""The C library in a Python process: its path, and its functions through cffi."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from mgpu_rt import _abi, _layout, _record, _record_json
from mgpu_rt._errors import HipError


def library_path() -> str:
    """Returns the path of libmlir_rocm_runtime.so, in mgpu_rt/lib or in a checkout's build/lib.

    Raises FileNotFoundError if the library was not built; the message says how to build it.
    """
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
    ffi.cdef(_abi.cdef(plain=True))
    ffi.cdef("void free(uintptr_t);")
    return ffi


#: The lifetime of a library object: its process, and its device's epoch, which ends with a reset.
#: Objects without an epoch survive a reset.
Life = tuple[int, int | None]


class RuntimeLibrary:
    """The functions of the library. Each function of the ABI and of mgpu_rt.h is an attribute:
    `library.mgpuStreamCreate()`. Handles and addresses are ints, such as NumPy's
    `array.ctypes.data`; 0 is a null pointer.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.ffi = declarations()
        try:
            self._native = self.ffi.dlopen(path)
        except OSError as error:
            raise OSError(f"{path} cannot be loaded: {why_not_loaded(error)}") from None
        self._thread = threading.local()
        self._asked: list[Any] = []  # C's callbacks; a thread may be in one that was replaced

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("mgpu") and name != "free":
            raise AttributeError(name)
        function = self.__dict__[name] = getattr(self._native, name)
        return function

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(name for name in dir(self._native) if name != "free")]

    def __repr__(self) -> str:
        return f"<mgpu_rt {self.version()} at {self.path}>"

    def address_of(self, buffer: Any) -> int:
        """Returns the address of a buffer's bytes, or of memory of cffi's. Keep the buffer."""
        is_cdata = isinstance(buffer, self.ffi.CData)
        return int(self.ffi.cast("uintptr_t", buffer if is_cdata else self.ffi.from_buffer(buffer)))

    def life(self) -> Life:
        """Returns the lifetime of an object that the library has just created on the current
        device."""
        return os.getpid(), self.mgpu_rt_epoch(-1)

    def lasts(self, life: Life) -> bool:
        """Returns False if an object's process or device's epoch is over."""
        process, epoch = life
        if process != os.getpid():
            return False
        return epoch is None or epoch == self.mgpu_rt_epoch(epoch // 2)

    def give_back(self, life: Life, function: Callable[..., object], *arguments: Any) -> None:
        """Calls a function that releases an object, unless the object's lifetime is over. A
        finalizer may call this method while its thread builds a graph. The release is then delayed
        until the graph's end, so that the release does not become part of the graph."""
        later = getattr(self._thread, "later", None)
        if later is not None and life[0] == os.getpid():
            later.callback(self.give_back, life, function, *arguments)
        elif self.lasts(life):
            function(*arguments)

    def finalize(
        self,
        owner: object,
        function: Callable[..., object],
        *arguments: Any,
        survives_reset: bool = False,
    ) -> weakref.finalize[Any, Any]:
        """Releases a new object of the library by `function` once `owner` is deleted. Releases
        nothing at exit, because other threads may use the object then."""
        life: Life = (os.getpid(), None) if survives_reset else self.life()
        end = weakref.finalize(owner, self.give_back, life, function, *arguments)
        end.atexit = False
        return end

    @contextlib.contextmanager
    def giving_back_later(self) -> Iterator[None]:
        """Delays this thread's releases until the end of the `with` statement."""
        outer = getattr(self._thread, "later", None)
        with contextlib.ExitStack() as later:  # an exception of one release loses no other
            self._thread.later = later
            try:
                yield
            finally:
                self._thread.later = outer

    def on_out_of_memory(self, make_room: Callable[[int, int], object] | None) -> None:
        """Makes mgpuMemAlloc call `make_room(device, bytes)` if device memory is exhausted, and
        then repeat the allocation once. `make_room=None` removes the function.

        The function runs on the threads that allocate, also at the same time, and must not
        change a thread's device. An exception of the function is printed, and the allocation
        still repeated.
        """
        called = self.ffi.NULL
        if make_room is not None:

            def ask(device: int, size: int) -> None:
                make_room(device, size)

            called = self.ffi.callback("void(int, size_t)", ask)
            self._asked.append(called)
            # The library must not call Python after the interpreter has ended.
            atexit.register(self.mgpu_rt_on_out_of_memory, self.ffi.NULL)
        self.mgpu_rt_on_out_of_memory(called)

    def take_error(self) -> str | None:
        """Returns HIP's name for the error of the last mgpu* call that failed on this thread, and
        clears the error. Returns None if no call has failed since the error was last cleared."""
        name = self.mgpu_rt_take_error()
        return self.ffi.string(name).decode() if name else None

    def check(self, failure: str) -> None:
        """Raises HipError, whose text begins with `failure`, if a call on this thread has
        failed."""
        if name := self.take_error():
            raise HipError("", 0, name, f"{failure}: {name} (stderr says more)")

    def checked(self, failure: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Calls a function of the library. Raises HipError as `check` does."""
        self.take_error()
        result = function(*arguments)
        self.check(failure)
        return result

    def version(self) -> str:
        """Returns the version of the library, "major.minor.patch"."""
        return self.ffi.string(self.mgpu_rt_version()).decode()


@functools.cache
def load() -> RuntimeLibrary:
    """Loads the library into this process at the first call; each later call returns the object of
    the first call. Raises FileNotFoundError as `library_path` does."""
    return RuntimeLibrary(library_path())


def empty_cache() -> int:
    """Releases all cached objects that are not in use: device memory, modules, streams. Returns the
    number of released objects."""
    return load().mgpu_rt_empty_cache()


def stats() -> dict[str, Any]:
    """Returns the statistics so far, as docs/statistics.md describes them.

    If neither MGPU_RT_STATS nor MGPU_RT_TRACE was set at the first call, the library counts only
    misses, evictions, `kept` and memory. None stands for all other counts and times.
    """
    library = load()
    size = library.ffi.new("size_t *")
    content = library.mgpu_rt_record(size)
    if not content:
        raise MemoryError("mgpu_rt_record")
    try:
        bytes_ = library.ffi.buffer(library.ffi.cast("char *", content), size[0])[:]
    finally:
        library.free(content)
    return _record_json.statistics(_record.Recording(bytes_))
