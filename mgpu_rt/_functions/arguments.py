"""Prepares the arguments of one call of a lowered function."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from mgpu_rt._arrays.work import Uses
from mgpu_rt._functions import descriptors, types, values
from mgpu_rt._launch.arrays import Array, In, array_argument
from mgpu_rt._library import RuntimeLibrary


class Arguments:
    """The arguments of a call, checked against the function's types. Callers use `precede` first,
    then `registers` or `pointers` for the call, and finally `submitted`.

    Raises TypeError or ValueError with a message that names the function and the argument.
    """

    def __init__(
        self, library: RuntimeLibrary, name: str, kinds: Sequence[types.Type], given: Sequence[Any]
    ) -> None:
        if len(given) != len(kinds):
            raise TypeError(
                f"{name} takes {len(kinds)} arguments, ({', '.join(k.text for k in kinds)}), and "
                f"got {len(given)}"
            )
        #: The external stream (use_stream) on which the function's work runs; 0 if there is none.
        self._lent = library.chosen_stream or 0
        self.uses = Uses()
        self._arrays: list[Array] = []  # kept until the end of the call
        #: Maps the `allocated` pointer that the function receives for an array to the array and its
        #: owner.
        self.owners: dict[int, object] = {}
        self._values: list[Any] = []
        for number, (kind, value) in enumerate(zip(kinds, given, strict=True), 1):
            try:
                self._values.append(self._value(kind, value))
            except (TypeError, ValueError, BufferError) as error:
                sort = TypeError if isinstance(error, TypeError) else ValueError
                raise sort(f"{name}, argument {number} ({kind.text}): {error}") from None

    def _value(self, kind: types.Type, value: Any) -> Any:
        """Returns a number, or the descriptor of an array."""
        if isinstance(kind, types.Scalar):
            return values.encode(value, kind)
        if isinstance(kind, types.Other):
            raise TypeError("Python cannot pass this type")
        array = array_argument(value, self._lent, self.uses)
        if array is None:
            raise TypeError(f"a {type(value).__name__} is not an array")
        self._arrays.append(array)
        described = descriptors.describe(array, kind)
        owner = value.array if isinstance(value, In) else value
        self.owners.setdefault(described.allocated or 0, (owner, array))
        return described

    def precede(self) -> None:
        """Waits for the earlier work on the device arrays, or makes the external stream wait."""
        if self._lent:
            self.uses.precede(self._lent)
        else:
            self.uses.wait()

    def registers(self) -> list[Any]:
        """Returns the arguments for a direct call of the function: a descriptor is passed member by
        member."""
        passed: list[Any] = []
        for value in self._values:
            if not isinstance(value, ctypes.Structure):
                passed.append(value)
                continue
            for name, *_ in value._fields_:
                member = getattr(value, name)
                if isinstance(member, ctypes.Array):
                    passed += map(ctypes.c_int64, member)
                else:
                    passed.append(ctypes.c_int64(member or 0))
        return passed

    def pointers(self) -> list[Any]:
        """Returns the arguments for a call through the function's C interface: a descriptor is
        passed by its address."""
        return [
            ctypes.byref(value) if isinstance(value, ctypes.Structure) else value
            for value in self._values
        ]

    def submitted(self) -> None:
        """Remembers that the function's work uses the arrays and the results. Without an external
        stream the function has waited for its work."""
        if self._lent:
            self.uses.submitted(self._lent)
        else:
            self.uses.complete()
