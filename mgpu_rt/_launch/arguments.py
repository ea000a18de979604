"""A kernel's arguments: values with the sizes that the image states, and addresses."""

from __future__ import annotations

import ctypes
import operator
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from mgpu_rt._arrays.given import Array, array_argument, refusal
from mgpu_rt._arrays.work import Uses
from mgpu_rt._images.model import Argument
from mgpu_rt._numbers import pack


@dataclass(frozen=True, eq=False)
class MemRef:
    """An array as MLIR lowers a memref: the address twice, the offset, the sizes, and the strides
    in elements."""

    array: Any


_POINTER = 8
_BY_VALUE = "by_value"
_NUMBERS = frozenset((int, float, bool))  # most arguments: these take the short way


def three(what: str, sizes: int | Sequence[int]) -> tuple[int, int, int]:
    """Returns one to three sizes of a grid or block as a triple. Raises ValueError."""
    given = sizes if isinstance(sizes, Sequence) else (sizes,)
    try:
        x, y, z, *more = [*map(operator.index, given), 1, 1][: max(3, len(given))]
    except (TypeError, ValueError):
        x, y, z, more = 0, 0, 0, []
    if more or not all(0 < size < 1 << 32 for size in (x, y, z)):
        raise ValueError(f"the {what} is {sizes!r}, but must be one to three sizes from 1 up")
    return x, y, z


def _is_scalar(value: Any) -> bool:
    """Returns True if the value's type determines the value's size: values of NumPy and ctypes, and
    bytes."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.generic):
        return True
    return isinstance(value, (bytes, ctypes._SimpleCData, ctypes.Structure, ctypes.Union))


def _encode(part: Any, parameter: Argument) -> bytes:
    """Returns the bytes for a part of an argument; their number is the parameter's size."""
    size = parameter.size
    if part is None or isinstance(part, Array):
        if size not in (_POINTER, None) or parameter.kind == _BY_VALUE:
            raise TypeError(f"the kernel takes {size} bytes by value, no array")
        return pack(part.address if part else 0, _POINTER, is_float=False, sign="u")
    if type(part) not in _NUMBERS and _is_scalar(part):
        content = part.tobytes() if hasattr(part, "tobytes") else bytes(part)
        if size is not None and len(content) != size:
            raise TypeError(f"{part!r} has {len(content)} bytes; the kernel takes {size}")
        return content
    if not isinstance(part, (int, float)):
        raise TypeError(
            f"a {type(part).__name__} cannot be an argument: pass a number, an array, or bytes"
        )
    if size is None:
        raise TypeError(f"the image does not give the parameter's size: pass {part} as bytes")
    is_float = isinstance(part, float)
    if is_float and parameter.kind not in (_BY_VALUE, None):
        raise TypeError(f"{part} is a float; the kernel takes a pointer")
    return pack(part, size, is_float=is_float)


class Passed:
    """The arguments of one launch: the bytes of each parameter, and the uses of arrays.

    Raises TypeError or ValueError before any work is submitted. The message names the kernel, and
    the argument if one argument is at fault.
    """

    def __init__(
        self,
        kernel: str,
        parameters: Sequence[Argument],
        arguments: Sequence[Any],
    ) -> None:
        self._arrays: list[Array] = []  # kept until the launch
        self.uses = Uses()
        parts: list[tuple[int, Any]] = []  # of all arguments, each with its argument's number
        for number, argument in enumerate(arguments, 1):
            try:
                parts += [(number, part) for part in self._parts(argument)]
            except (TypeError, ValueError) as error:
                raise refusal(f"kernel '{kernel}', argument {number}", error) from None
        if len(parts) != len(parameters):
            raise TypeError(_wrong_count(kernel, len(parameters), len(parts), arguments))
        self.values: list[bytes] = []
        for (number, part), parameter in zip(parts, parameters, strict=True):
            try:
                self.values.append(_encode(part, parameter))
            except (TypeError, ValueError) as error:
                raise refusal(f"kernel '{kernel}', argument {number}", error) from None

    def _parts(self, given: Any) -> Iterator[Any]:
        """Yields the parts of an argument: the argument itself, or the parts of a memref."""
        if not isinstance(given, MemRef):
            yield self._resolved(given)
            return
        array = self._resolved(given.array)
        if not isinstance(array, Array):
            raise TypeError(
                f"a {type(given.array).__name__} has no shape, so no memref can describe it"
            )
        yield from (array, array, 0, *array.shape, *array.steps)

    def _resolved(self, value: Any) -> Any:
        """Returns a device array as an Array, and any other value unchanged."""
        if value is None or isinstance(value, (int, float)) or _is_scalar(value):
            return value
        array = array_argument(value, self.uses)
        if array is None:
            return value
        if not array.on_device:
            raise TypeError(
                f"a {type(value).__name__} is in the memory of the host, which the kernel cannot "
                "use: pass mgpu_rt.to_device(array)"
            )
        self._arrays.append(array)
        return array


def _wrong_count(kernel: str, wanted: int, given: int, arguments: Sequence[Any]) -> str:
    text = f"kernel '{kernel}' takes {wanted} arguments, and got {given}"
    if given < wanted and not any(isinstance(argument, MemRef) for argument in arguments):
        text += ": a memref of MLIR's is several, which mgpu_rt.MemRef(array) makes of an array"
    return text
