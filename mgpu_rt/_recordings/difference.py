"""Compares a memory block's content after a launch with the recorded content."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mgpu_rt._numbers import DTYPES, FLOATS, numbers
from mgpu_rt._packages import numpy_for


@dataclass(frozen=True)
class Difference:
    """Describes the elements in which two contents of a memory block differ."""

    block: int
    first: int  # the index of the first one
    count: int
    largest: float | None = None  # error: NaN if one side is; None for bytes
    dtype: str = "bytes"
    values: tuple[str, str] = field(default=("", ""), compare=False)  # of the first one
    as_integers: bool = False  # the floats are denormal or NaN, as small integers read as floats

    def __str__(self) -> str:
        wrong = f"memory block {self.block}: {self.count:,} "
        if self.largest is None:
            return f"{wrong}bytes differ, the first is byte {self.first}"
        error = f"{self.largest:g}" if isinstance(self.largest, float) else str(self.largest)
        first = f"the first is element {self.first}, largest error {error}"
        end = "; they are denormal or NaN: name the type of integers" if self.as_integers else ""
        return f"{wrong}elements ({self.dtype}) differ, {first}{end}"


class Allowed(NamedTuple):
    """The permitted differences: an absolute error, and a number of steps between floats, for
    elements of the type `dtype`. Without a type, bytes are compared."""

    tolerance: float | None
    ulps: int
    dtype: str | None

    @property
    def is_exact(self) -> bool:
        return self.tolerance is None and not self.ulps

    def check(self) -> None:
        """Raises ValueError for values that `differences` does not accept, and ImportError if it
        needs NumPy."""
        known = ", ".join(DTYPES)
        if self.dtype not in (None, *DTYPES):
            raise ValueError(f"'{self.dtype}' is not a type of numbers: name one of {known}")
        if self.tolerance is not None and not 0 <= self.tolerance < math.inf:
            raise ValueError(f"the tolerance is {self.tolerance}, but must be a number from 0 up")
        if not self.is_exact and not self.dtype:
            allowed = "the tolerance is" if self.ulps == 0 else "ulps are"
            raise ValueError(
                f"{allowed} for numbers of one type: name it by --dtype (in Python dtype=), "
                f"as one of {known}"
            )
        if self.ulps and self.dtype not in FLOATS:
            raise ValueError(f"ulps are for floats, but the type is {self.dtype}: omit ulps")
        if self.dtype:
            numpy_for("--dtype" if self.is_exact else "--tolerance")


def differences(block: int, now: bytes, then: bytes, allowed: Allowed) -> list[Difference]:
    """Returns the differences between two contents of equal length: the elements whose difference
    is not allowed, or bytes. If no difference is allowed, compares the bits of elements.

    Integers have to be equal, and a NaN equals any NaN. If all floats that differ are denormal or
    NaN with a payload, they count as integers, and so as different. Floats whose error exceeds the
    tolerance still count as equal if at most `ulps` units in the last place separate them. Bytes
    after the last whole element are compared as bytes.
    """
    if now == then:
        return []
    if allowed.dtype is None:
        return _of_bytes(block, now, then)
    whole = len(then) - len(then) % int(DTYPES[allowed.dtype][1:])
    found = _of_elements(block, now[:whole], then[:whole], allowed)
    return found + _of_bytes(block, now, then, whole)


def _of_elements(block: int, now: bytes, then: bytes, allowed: Allowed) -> list[Difference]:
    numpy, (tolerance, ulps, dtype) = numpy_for("--tolerance"), allowed
    assert dtype is not None
    bits = f"u{numpy.dtype(DTYPES[dtype]).itemsize}"
    wrong = numpy.frombuffer(now, bits) != numpy.frombuffer(then, bits)
    mine, theirs = numbers(now, dtype), numbers(then, dtype)
    as_integers = False
    if dtype in FLOATS and not allowed.is_exact:
        units = ulps << 16 if dtype == "bf16" else ulps  # of f32
        unlike = [numpy.frombuffer(each, bits)[wrong] for each in (now, then)]
        as_integers = bool(wrong.any()) and _are_integers(numpy, *unlike, dtype)
        if not as_integers:
            wrong &= ~_are_near(numpy, mine, theirs, tolerance or 0, units)
    indices = wrong.nonzero()[0]
    if not len(indices):
        return []
    first, kind = int(indices[0]), "f8" if dtype in FLOATS else object  # Python's exact integers
    with numpy.errstate(all="ignore"):
        errors = abs(mine[indices].astype(kind) - theirs[indices].astype(kind))
    largest = float(errors.max()) if dtype in FLOATS else errors.max()
    values = (str(mine[first]), str(theirs[first]))
    return [Difference(block, first, len(indices), largest, dtype, values, as_integers)]


def _of_bytes(block: int, now: bytes, then: bytes, begin: int = 0) -> list[Difference]:
    """Compares bytes as two large integers, which is faster than a loop in Python."""
    wrong = int.from_bytes(now[begin:], "little") ^ int.from_bytes(then[begin:], "little")
    unlike = wrong.to_bytes(len(then) - begin, "little")
    count = len(unlike) - unlike.count(0)
    first = begin + len(unlike) - len(unlike.lstrip(b"\0"))
    return [Difference(block, first, count)] if count else []


def _are_near(numpy: Any, mine: Any, theirs: Any, tolerance: float, ulps: int) -> Any:
    """Returns which elements are equal, both NaN, or at most `tolerance` or `ulps` units in the
    last place apart. An infinity is near no other number."""
    equal = (mine == theirs) | (numpy.isnan(mine) & numpy.isnan(theirs))
    with numpy.errstate(all="ignore"):
        errors = abs(mine.astype("f8") - theirs.astype("f8"))
        unit = numpy.spacing(numpy.minimum(abs(mine), abs(theirs))).astype("f8")
        # The unit of the largest number is infinite.
        are_finite = numpy.isfinite(errors) & numpy.isfinite(unit)
        return equal | (errors <= tolerance) | (are_finite & (errors <= ulps * unit))


#: The bits of a float's fraction.
_FRACTIONS = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}


def _are_integers(numpy: Any, mine: Any, theirs: Any, dtype: str) -> bool:
    """Returns whether each pair of floats, given as bits, looks like two small integers. Positive
    ones are zero or denormal as floats, and negative ones are NaN with more than a computed NaN
    holds."""
    width = _FRACTIONS[dtype]
    infinity = numpy.array((1 << (8 * mine.itemsize - 1)) - (1 << width), mine.dtype)
    quiet = numpy.array(1 << (width - 1), mine.dtype)
    normal = numpy.array(1 << width, mine.dtype)
    small, beyond = [], []
    for each in (mine, theirs):
        small.append(each < normal)
        beyond.append(((each & infinity) == infinity) & ((each & (normal - 1)) > quiet))
    return bool(((small[0] & small[1]) | (beyond[0] & beyond[1])).all())
