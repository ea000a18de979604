"""Prepares the arguments of one call of a lowered function."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from mgpu_rt._arrays.work import Uses
from mgpu_rt._functions import descriptors, types, values
from mgpu_rt._launch.arrays import Array, array_of
from mgpu_rt._launch.copies import Copies, Copy, In, InOut, Out, check_writable, wait_for
from mgpu_rt._library import RuntimeLibrary


class Arguments:
    """The arguments of a call, checked against the function's types. Callers use `to_device` first,
    then `registers` or `pointers` for the call, then `to_host`, and finally `release`.

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
        self._library = library
        #: The external stream (use_stream) on which the function's work runs; 0 if there is none.
        self.lent = library.chosen_stream or 0
        self._own: Any = None  # for copies, if there is no external stream
        self._arrays: list[Array] = []
        self.uses = Uses()
        self._copies: Copies | None = None
        self._parts: list[tuple[types.Type, Any]] = []  # a value, or an array with its address
        #: Maps the `allocated` pointer that the function receives for an array to the owner of the
        #: array.
        self.owners: dict[int, object] = {}
        for number, (kind, value) in enumerate(zip(kinds, given, strict=True), 1):
            try:
                self._parts.append((kind, self._part(kind, value)))
            except (TypeError, ValueError, BufferError) as error:
                sort = TypeError if isinstance(error, TypeError) else ValueError
                self.release()
                raise sort(f"{name}, argument {number} ({kind.text}): {error}") from None

    def _part(self, kind: types.Type, value: Any) -> Any:
        if isinstance(kind, types.Scalar):
            return values.encode(value, kind)
        if isinstance(kind, types.Other):
            raise TypeError("Python cannot pass this type")
        is_wrapped = isinstance(value, (In, Out, InOut))
        inner = value.array if is_wrapped else value
        array = array_of(inner, self.lent, gaps=not is_wrapped)
        if array is None:
            raise TypeError(f"a {type(inner).__name__} is not an array")
        self._arrays.append(array)
        self.uses.add(array.work, writes=not isinstance(value, In))
        place: Array | Copy = array
        if is_wrapped and not array.on_device:
            if self._copies is None:
                self._copies = Copies(self._library, self._stream())
            place = self._copies.of(value, array)
        elif array.on_device:
            check_writable(value, array)
        elif array.readonly:
            raise ValueError(
                "the array is read-only, and the function may write to it: pass a copy"
            )
        _describe(0, array, kind)  # raises
        return place, array, value

    def _stream(self) -> Any:
        """Returns the stream for copies: the external stream, or a stream of the library."""
        if self.lent:
            return self._library.ffi.cast("hipStream_t", self.lent)
        if self._own is None:
            self._own = self._library.mgpuStreamCreate()
        return self._own

    def to_device(self) -> None:
        """Waits for the earlier work on the device arrays, and copies host arrays to the device.
        The function's work runs after the fills and the copies. Raises HipError."""
        library = self._library
        if self.lent:
            self.uses.precede(self.lent)
        else:
            self.uses.wait()
        for handle in {array.stream for array in self._arrays} - {None, self.lent or None}:
            other = library.ffi.cast("hipStream_t", handle)
            if self.lent:
                wait_for(library, self._stream(), other)
            else:
                library.mgpuStreamSynchronize(other)
        if self._copies is not None:
            self._copies.to_device()
            if not self.lent:  # work on an external stream follows the copies
                self._library.mgpuStreamSynchronize(self._own)

    def registers(self) -> list[Any]:
        """Returns the arguments for a direct call of the function: a descriptor is passed member by
        member."""
        passed: list[Any] = []
        for described in self._described():
            if not isinstance(described, ctypes.Structure):
                passed.append(described)
                continue
            for name, *_ in described._fields_:
                member = getattr(described, name)
                if isinstance(member, ctypes.Array):
                    passed += map(ctypes.c_int64, member)
                else:
                    passed.append(ctypes.c_int64(member or 0))
        return passed

    def pointers(self) -> list[Any]:
        """Returns the arguments for a call through the function's C interface: a descriptor is
        passed by its address."""
        return [
            ctypes.byref(described) if isinstance(described, ctypes.Structure) else described
            for described in self._described()
        ]

    def _described(self) -> list[Any]:
        described, self._kept = [], []
        for kind, part in self._parts:
            if isinstance(kind, types.Scalar):
                described.append(part)
                continue
            place, array, value = part
            address = place.device_address if isinstance(place, Copy) else array.address
            made, kept = _describe(address, array, kind)
            self._kept.append(kept)  # the descriptor that an unranked memref points to
            described.append(made)
            allocated = (kept if isinstance(kind, types.Unranked) else made).allocated or 0
            self.owners.setdefault(allocated, place if isinstance(place, Copy) else (value, array))
        return described

    def to_host(self) -> None:
        if self._copies is not None:
            self._copies.to_host()
            self._library.mgpuStreamSynchronize(self._stream())

    def submitted(self) -> None:
        """Remembers that the function's work uses the arrays and the results. Without an external
        stream the function has waited for its work."""
        if self.lent:
            self.uses.submitted(self.lent)
        else:
            self.uses.complete()

    def release(self) -> None:
        """Releases the device memory of the copies, and the stream that the library has created for
        the copies."""
        if self._copies is not None:
            self._copies.release()
        if self._own is not None:
            self._library.mgpuStreamSynchronize(self._own)
            self._library.mgpuStreamDestroy(self._own)
            self._own = None


def _describe(address: int, array: Array, kind: types.Type) -> tuple[Any, Any]:
    if isinstance(kind, types.Unranked):
        return descriptors.describe_unranked(address, array, kind)
    assert isinstance(kind, types.MemRefType)
    return descriptors.describe(address, array, kind), None
