"""Reads MLIR's types of host functions from their text: `(memref<?x4xf32>, index) -> f32`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

#: The size in bytes of an element or a scalar, by type. MLIR's index has 64 bits in lowered
#: programs.
SIZES = {
    **dict.fromkeys(("i1", "i8", "si8", "ui8"), 1),
    **dict.fromkeys(("i16", "si16", "ui16", "f16", "bf16"), 2),
    **dict.fromkeys(("i32", "si32", "ui32", "f32"), 4),
    **dict.fromkeys(("i64", "si64", "ui64", "f64", "index"), 8),
    **{"complex<f32>": 8, "complex<f64>": 16},
}
FLOATS = ("f16", "bf16", "f32", "f64")


@dataclass(frozen=True)
class Scalar:
    """A number: an integer, an index or a float."""

    text: str

    @property
    def is_float(self) -> bool:
        return self.text in FLOATS

    @property
    def size(self) -> int:
        return SIZES[self.text]


@dataclass(frozen=True)
class MemRefType:
    """A memref with a rank. None in shape, strides and offset means `?`; `strides` is None if the
    elements are contiguous."""

    text: str
    element: str
    shape: tuple[int | None, ...]
    strides: tuple[int | None, ...] | None = None
    offset: int | None = 0

    @property
    def rank(self) -> int:
        return len(self.shape)


@dataclass(frozen=True)
class Other:
    """A type that Python cannot pass, such as a vector or an unranked memref."""

    text: str


Type = Scalar | MemRefType | Other


@dataclass(frozen=True)
class Function:
    arguments: tuple[Type, ...]
    results: tuple[Type, ...]

    def __str__(self) -> str:
        arguments, results = (
            ", ".join(t.text for t in ts) for ts in (self.arguments, self.results)
        )
        return f"({arguments}) -> {results if len(self.results) == 1 else f'({results})'}"


_DIMENSION = re.compile(r"(\d+|\?)x")
_STRIDED = re.compile(r"strided<\[([^\]]*)\](?:,\s*offset:\s*(\?|-?\d+))?>")


def function(text: str) -> Function:
    """Reads the type of a function. Raises ValueError if the text is no type."""
    text = text.strip()
    end = _closing(text) if text.startswith("(") else -1
    arrow, _, results = text[end + 1 :].partition("->")
    if end < 0 or arrow.strip() or not results.strip():
        raise ValueError(f"'{text}' is not a type of a function: write (memref<?xf32>, i32) -> f32")
    results = results.strip()
    if results.startswith("(") and _closing(results) == len(results) - 1:
        results = results[1:-1]
    return Function(_all(text[1:end]), _all(results))


def _all(text: str) -> tuple[Type, ...]:
    return tuple(one(part) for part in split(text))


def one(text: str) -> Type:
    text = text.strip()
    if text in SIZES and not text.startswith("complex"):
        return Scalar(text)
    if text.startswith("memref<") and text.endswith(">"):
        return _memref(text) or Other(text)
    return Other(text)


def _memref(text: str) -> MemRefType | None:
    first, *rest = split(text[len("memref<") : -1])
    shape: list[int | None] = []
    while dimension := _DIMENSION.match(first):
        shape.append(None if dimension[1] == "?" else int(dimension[1]))
        first = first[dimension.end() :]
    layouts = [part for part in rest if part.startswith(("strided<", "affine_map<", "#map"))]
    if first not in SIZES or (layouts and not _STRIDED.fullmatch(layouts[0])):
        return None
    if not layouts:
        return MemRefType(text, first, tuple(shape))
    found = _STRIDED.fullmatch(layouts[0])
    assert found
    strides = tuple(map(_size, split(found[1])))
    if len(strides) != len(shape):
        return None
    return MemRefType(text, first, tuple(shape), strides, _size(found[2] or "0"))


def _size(text: str) -> int | None:
    return None if text.strip() == "?" else int(text)


# ---- brackets ----


def _depths(text: str) -> Iterator[tuple[int, str, int]]:
    """Yields each position in the text, the character at the position, and the number of open
    brackets after the character. An arrow (->) closes no bracket."""
    depth = 0
    for place, letter in enumerate(text):
        if letter in "(<[{":
            depth += 1
        elif letter in ")]}" or (letter == ">" and text[place - 1 : place] != "-"):
            depth -= 1
        yield place, letter, depth


def _closing(text: str) -> int:
    """Returns the position where the first bracket is closed; -1 if the bracket is never closed."""
    return next((place for place, _letter, depth in _depths(text) if depth == 0), -1)


def split(text: str) -> list[str]:
    """Splits at the commas outside of brackets."""
    parts = [""]
    for _place, letter, depth in _depths(text):
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]
