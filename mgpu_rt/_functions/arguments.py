"""Prepares the arguments of one call of a lowered function."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mgpu_rt._arrays.arrays import DeviceArray, to_device
from mgpu_rt._arrays.given import In, array_argument, refusal
from mgpu_rt._arrays.work import Uses, builds_graph
from mgpu_rt._functions import descriptors, types, values
from mgpu_rt._packages import numpy_for


@dataclass(frozen=True)
class InOut:
    """A NumPy array for a function that wants device memory. The call copies the array to the
    device, waits for the function's work, and copies the array back. A call that raises an
    exception leaves the array as it was."""

    array: Any


def _otherwise(kind: str) -> str:
    """Returns what a function may take in place of a type that Python cannot pass."""
    if kind in ("f16", "bf16"):
        return ": let the function take an f32, and truncate it (arith.truncf)"
    return ": give the memref a rank" if kind.startswith("memref<*") else ""


class Arguments:
    """The arguments of a call, checked against the function's types.

    Raises TypeError or ValueError with a message that names the function and the argument.
    """

    def __init__(self, name: str, kinds: Sequence[types.Type], given: Sequence[Any]) -> None:
        if len(given) != len(kinds):
            raise TypeError(
                f"{name} takes {len(kinds)} arguments, ({', '.join(k.text for k in kinds)}), and "
                f"got {len(given)}"
            )
        self.uses = Uses()
        #: Maps the `allocated` pointer that the function receives for an array to the array's owner
        #: and the array, which this object keeps.
        self.owners: dict[int, object] = {}
        self._kept: list[Any] = []
        self._copies: list[tuple[Any, DeviceArray]] = []  # of InOut's arrays
        self._values: list[Any] = []
        for number, (kind, value) in enumerate(zip(kinds, given, strict=True), 1):
            try:
                self._values.append(self._value(kind, value))
            except (TypeError, ValueError, BufferError) as error:
                raise refusal(f"{name}, argument {number} ({kind.text})", error) from None

    def _value(self, kind: types.Type, value: Any) -> Any:
        """Returns a number, or the descriptor of an array."""
        if isinstance(kind, types.Scalar):
            return values.encode(value, kind)
        if isinstance(kind, types.Other):
            raise TypeError(f"Python cannot pass this type{_otherwise(kind.text)}")
        if isinstance(value, InOut):
            value = self._copy(value.array)
        array = array_argument(value, self.uses)
        if array is None:
            raise TypeError(f"a {type(value).__name__} is not an array")
        self._kept.append(array)
        described = descriptors.describe(array, kind)
        owner = value.array if isinstance(value, In) else value
        self.owners.setdefault(described[0], (owner, array))
        return described

    def _copy(self, array: Any) -> DeviceArray:
        """Returns a copy of an array in device memory; an array that is passed twice has one."""
        if not isinstance(array, numpy_for("InOut").ndarray) or not array.flags.writeable:
            raise TypeError("InOut takes a NumPy array that may be written")
        if builds_graph():
            raise ValueError("a graph cannot copy for InOut: pass mgpu_rt.to_device(array)")
        for known, copy in self._copies:
            if known is array:
                return copy
        self._copies.append((array, to_device(array)))
        return self._copies[-1][1]

    def copy_back(self) -> None:
        """Copies InOut's arrays back, after the function's work on them."""
        for array, copy in self._copies:
            array[...] = copy.to_host()

    def registers(self) -> list[Any]:
        """Returns the arguments for a direct call of the function: a descriptor is passed number by
        number."""
        passed: list[Any] = []
        for value in self._values:
            if isinstance(value, ctypes.Array):
                passed += map(ctypes.c_int64, value)
            else:
                passed.append(value)
        return passed

    def pointers(self) -> list[Any]:
        """Returns the arguments for a call through the function's C interface: a descriptor is
        passed by its address."""
        return [
            ctypes.byref(value) if isinstance(value, ctypes.Array) else value
            for value in self._values
        ]
