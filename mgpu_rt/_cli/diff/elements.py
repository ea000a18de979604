"""Finds the elements that differ between the sides after a launch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from mgpu_rt._launch.arguments import parameters_of
from mgpu_rt.runtime import _difference
from mgpu_rt.runtime._difference import DTYPES
from mgpu_rt.runtime._objects import Image, MemRefDescriptor, memref_at, numpy_for
from mgpu_rt.runtime._recorded import RecordedLaunch

_SIZES = {1: "i8", 2: "f16", 4: "f32", 8: "f64"}
_FLOATS = 2.0**40  # numbers of programs are hardly larger, nor smaller than its inverse


class Contents(NamedTuple):
    """A block's contents before and after a launch, for both sides."""

    before: tuple[bytes, bytes]
    after: tuple[bytes, bytes]


@dataclass(frozen=True)
class Allowed:
    """The permitted differences: an absolute error, and a number of steps between floats. With a
    tolerance of None every bit must be equal. With a dtype of None the comparison guesses the
    type."""

    tolerance: float | None
    ulps: int
    dtype: str | None

    @property
    def error(self) -> float | None:
        """Returns the permitted absolute error; None if every bit must be equal."""
        return 0.0 if self.tolerance is None and self.ulps else self.tolerance


@dataclass(frozen=True)
class Differing:
    """The differing elements of a block, and the first differing element."""

    block: int  # the block's number, as in a replay
    argument: int  # number of the argument that points to the block
    size: int  # bytes of the block
    dtype: str
    is_guess: bool
    count: int
    total: int
    index: str  # index of the first one, from where the argument points
    values: tuple[str, str]  # values of the first one
    distance: str  # between them

    def lines(self) -> list[str]:
        """In words."""
        kind = f"{self.dtype}, a guess: --dtype sets it" if self.is_guess else self.dtype
        before, after = self.values
        return [
            f"memory block {self.block} (argument {self.argument}; {self.size:,} bytes): "
            f"{self.count:,} of {self.total:,} elements ({kind}) differ",
            f"the first, {self.index}: {before} before, {after} after; {self.distance}",
        ]


def differing(
    launch: RecordedLaunch, image: bytes, block: int, held: Contents, allowed: Allowed
) -> Differing | None:
    """Returns the elements of a block that at least one side wrote, and whose differences exceed
    `allowed`."""
    numpy = numpy_for("mgpu-rt diff")
    argument, memref = _argument(launch, image, block)
    size = launch.blocks[block].size
    dtype = allowed.dtype or _guess(numpy, memref, size, held.after)
    width = numpy.dtype(DTYPES[dtype]).itemsize
    padded = [content + bytes(-size % width) for content in (*held.before, *held.after)]
    old, new = padded[:2], padded[2:]
    wrong = _unlike(numpy, *new, width)
    written = _unlike(numpy, old[0], new[0], width) | _unlike(numpy, old[1], new[1], width)
    if (error := allowed.error) is not None:
        wrong &= _difference.errors_of(*new, error, dtype, allowed.ulps)[1]
    indices = (wrong & written).nonzero()[0]
    if not len(indices):
        return None
    first = int(indices[0])
    there = [content[first * width : (first + 1) * width] for content in new]
    begin = launch.arguments[argument].offset // width
    return Differing(
        block, argument, size, dtype, allowed.dtype is None, len(indices), len(padded[0]) // width,
        _index(first - begin, memref), _values(there, dtype), _distance(there, dtype),
    )  # fmt: skip


def _unlike(numpy: Any, one: bytes, other: bytes, width: int) -> Any:
    """Returns the elements that differ in at least one bit."""
    parts = [numpy.frombuffer(content, f"u{width}") for content in (one, other)]
    return parts[0] != parts[1]


def _argument(
    launch: RecordedLaunch, image: bytes, block: int
) -> tuple[int, MemRefDescriptor | None]:
    """Returns the first argument that points to the block. Also returns the memref that begins with
    this argument, or None."""
    at = next(number for number, a in enumerate(launch.arguments) if a.block == block)
    kernel = Image(image).kernels.get(launch.kernel)
    parameters = (parameters_of(kernel) if kernel else None) or ()
    kinds = [parameter.kind for parameter in parameters]
    values = [
        int.from_bytes(argument.content, "little", signed=kind == "by_value")
        for argument, kind in zip(launch.arguments, kinds, strict=False)
    ]
    return at, memref_at(values, kinds, at) if at < len(kinds) else None


def _guess(
    numpy: Any, memref: MemRefDescriptor | None, size: int, contents: Sequence[bytes]
) -> str:
    """Guesses the type of the elements in a block. The memref determines the elements' size.
    Chooses a float type if, on each side, at least half of the nonzero numbers are neither huge nor
    tiny."""
    count = math.prod(memref.sizes) if memref else 0
    dtype = _SIZES.get(size // count if count and size % count == 0 else 4, "f32")
    if dtype == "i8":
        return dtype
    for content in contents:
        whole = len(content) - len(content) % numpy.dtype(DTYPES[dtype]).itemsize
        values = _difference.numbers(content[:whole], dtype)
        values = numpy.abs(values[numpy.isfinite(values) & (values != 0)].astype("f8"))
        usual = (values < _FLOATS) & (values > 1 / _FLOATS)
        if 2 * usual.sum() < len(values):
            return dtype.replace("f", "i")
    return dtype


def _index(index: int, memref: MemRefDescriptor | None) -> str:
    """Returns an element's index as text. An element outside the memref gets its distance from the
    argument's address."""
    if memref is None or not 0 <= index - memref.offset < math.prod(memref.sizes):
        return f"[{index}]"
    left, found = index - memref.offset, []
    for stride in memref.strides:
        found.append(left // stride)
        left %= stride
    return f"[{', '.join(map(str, found))}]"


def _values(there: Sequence[bytes], dtype: str) -> tuple[str, str]:
    """Returns two values as texts; if the texts are equal, each text also contains the value's
    bits."""
    before, after = (str(_difference.numbers(content, dtype)[0]) for content in there)
    if before == after:
        return tuple(f"{before} ({content[::-1].hex()})" for content in there)  # type: ignore
    return before, after


def _distance(there: Sequence[bytes], dtype: str) -> str:
    before, after = there
    error = _difference.errors_of(before, after, 0.0, dtype)[0][0]
    if not dtype.startswith(("f", "bf")):
        return f"{error} apart"
    if math.isnan(error):
        return "one is NaN"
    steps = int(_difference.ulps_between(before, after, dtype)[0])
    return f"{error:g} apart, {steps:,} ulps"
