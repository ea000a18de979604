"""A library of lowered functions, called from Python on arrays."""

from __future__ import annotations

import _ctypes
import ctypes
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mgpu_rt._functions import results, sidecar, types, values
from mgpu_rt._functions.arguments import Arguments
from mgpu_rt._library import load
from mgpu_rt._streams import chosen_stream

_C_INTERFACE = "_mlir_ciface_"


class Library:
    """A shared library that MLIR lowered, and its host functions by name.

        library = mgpu_rt.Library("model.so")
        y = library.forward(x, w)

    `mgpu-rt lower` writes the types of the functions into the files that it makes. For another
    library, give the types as MLIR writes them: functions={"forward": "(memref<?x4xf32>, index) ->
    f32"}.

    The library is unloaded when no reference to it, its functions and its constants is left. Work
    on an external stream must be complete before the library is unloaded.

    Raises OSError if the file cannot be loaded, and HipError if HIP refuses the device code. Raises
    ValueError or TypeError if the file is no lowered library.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        functions: Mapping[str, str] | None = None,
    ) -> None:
        self.path = os.path.abspath(os.fspath(path))
        texts = sidecar.read(Path(self.path)) | dict(functions or {})
        self._types = {name: types.function(text) for name, text in texts.items()}
        self._loaded = _Loaded(self.path)
        self._functions: dict[str, Function] = {}

    def __getattr__(self, name: str) -> Function:
        if name.startswith("_"):  # also the attributes that __init__ has not set yet
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(*error.args) from None

    def __getitem__(self, name: str) -> Function:
        """Returns a function, even if its name cannot be used as an attribute. Raises KeyError or
        ValueError."""
        if name not in self._types:
            unknown = "none: lower it by `mgpu-rt lower`, or give functions={...}"
            known = ", ".join(self._types) or unknown
            file = os.path.basename(self.path)
            raise KeyError(f"'{file}' has no function '{name}'; it has {known}")
        if name not in self._functions:
            self._functions[name] = Function(self._loaded, name, self._types[name])
        return self._functions[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._types)

    def __dir__(self) -> set[str]:
        return {*super().__dir__(), *self._types}  # a function may have an attribute's name

    def __repr__(self) -> str:
        return f"<mgpu_rt.Library '{self.path}': {', '.join(self) or 'types unknown'}>"


def _is_other(error: str) -> bool:
    """Returns whether the loader says that a file is there, and is no shared library."""
    words = ("only ET_DYN", "invalid ELF header", "dynamically load position-independent executabl")
    return any(each in error for each in words)


class _Loaded:
    """The loaded library, which is unloaded when the last reference to this object is gone."""

    def __init__(self, path: str) -> None:
        runtime = load()
        # A library that was linked without the runtime uses this process's runtime.
        ctypes.CDLL(runtime.path, os.RTLD_GLOBAL | os.RTLD_NOW)
        runtime.take_error()
        try:
            self.library = ctypes.CDLL(path, os.RTLD_NOW)
        except OSError as error:
            how = "; `mgpu-rt lower --emit library` makes one" if _is_other(str(error)) else ""
            raise OSError(f"{path} cannot be loaded: {error}{how}") from None
        handle = self.library._handle
        runtime.finalize(self, _ctypes.dlclose, handle, survives_reset=True)
        runtime.check(f"the device code in {path} was not loaded")

    def symbol(self, name: str) -> Any:
        """Returns the function with that name, or None. Each caller gets its own function
        object."""
        try:
            return self.library[name]
        except AttributeError:
            return None


class Function:
    """A lowered host function: it takes numbers and arrays, and returns its results."""

    def __init__(self, loaded: _Loaded, name: str, kind: types.Function) -> None:
        self.name, self.type = name, kind
        self._loaded = loaded
        if other := [t.text for t in kind.results if isinstance(t, types.Other)]:
            raise TypeError(f"{name} returns {', '.join(other)}, which Python cannot receive")
        in_c = loaded.symbol(_C_INTERFACE + name)
        self._is_c_interface = in_c is not None
        self._function = in_c if in_c is not None else loaded.symbol(name)
        if self._function is None:
            raise AttributeError(f"{os.path.basename(loaded.library._name)} defines no '{name}'")
        self._result = _result(name, kind.results, c_interface=self._is_c_interface)
        self._is_number = len(kind.results) == 1 and isinstance(kind.results[0], types.Scalar)
        self._function.restype = self._result if self._is_number else None

    def __repr__(self) -> str:
        return f"<function {self.name}{self.type}>"

    def __call__(self, *arguments: Any) -> Any:
        """Calls the function; other Python threads run during the call.

        - A number is converted to the parameter's type, if it fits.
        - An array is passed without a copy, on the host or on the device: NumPy's, CuPy's,
          PyTorch's on the device. The array's type, shape and strides must match the function's.
          `In` passes an array that the function only reads; `InOut` passes a copy of a NumPy array
          in device memory, and copies it back.

        Returns a number, a NumPy array in memory that the function has allocated, a DeviceArray, or
        a tuple of these. Raises TypeError or ValueError for arguments that do not fit, and HipError
        if HIP refuses a call that the function makes.
        """
        runtime = load()
        stream = chosen_stream() or 0
        passed = Arguments(self.name, self.type.arguments, arguments)
        runtime.take_error()
        if stream:
            passed.uses.precede(stream)
        else:
            passed.uses.wait()
        try:
            given = passed.pointers() if self._is_c_interface else passed.registers()
            reader = results.Reader(self._loaded, passed.owners, passed.uses)
            read = self._read(reader, self._call(given))
        finally:
            if stream:
                passed.uses.submitted(stream)
            else:  # the function has waited for its work
                passed.uses.complete()
        runtime.check(f"{self.name} failed")
        passed.copy_back()
        return None if not read else read[0] if len(read) == 1 else tuple(read)

    def _call(self, arguments: list[Any]) -> list[tuple[types.Type, Any]]:
        """Calls the function. Returns the type of each result, and the result before the conversion
        to Python."""
        kinds = self.type.results
        if self._result is None or self._is_number:
            found = self._function(*arguments)
            return [(kind, found) for kind in kinds]
        room = self._result()
        self._function(ctypes.byref(room), *arguments)
        return [(kind, getattr(room, f"r{number}")) for number, kind in enumerate(kinds)]

    def _read(self, reader: results.Reader, found: list[tuple[types.Type, Any]]) -> list[Any]:
        """Reads all results, so that each allocation gets an owner; only then raises the first
        exception."""
        read: list[Any] = []
        refused: list[ImportError] = []
        for kind, content in found:
            try:
                read.append(reader.read(kind, content))
            except ImportError as error:
                refused.append(error)
        if refused:
            raise refused[0]
        return read


#: The largest number of integers that LLVM's code returns in registers. LLVM's code returns larger
#: results through memory, as C does. LLVM's rules for results in registers differ from C's rules.
_REGISTERS = 3


def _result(name: str, kinds: tuple[types.Type, ...], *, c_interface: bool) -> type | None:
    """Returns the ctypes class of the function's result; a structure is returned through the
    caller's memory. Raises TypeError if C cannot receive the function's result."""
    if not kinds:
        return None
    if len(kinds) == 1 and isinstance(kinds[0], types.Scalar):
        return values.register_type(kinds[0])
    integers = sum(_integers(kind) for kind in kinds)
    if not c_interface and integers <= _REGISTERS:
        raise TypeError(
            f"{name} returns {', '.join(k.text for k in kinds)} in registers, which Python "
            f"cannot read: give the function the attribute llvm.emit_c_interface"
        )
    return results.structure(kinds)


def _integers(kind: types.Type) -> int:
    if isinstance(kind, types.MemRefType):
        return 3 + 2 * kind.rank
    return int(not getattr(kind, "is_float", False))
