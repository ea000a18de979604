"""Reads MLIR's types of host functions from their text: `(memref<?x4xf32>, index) -> f32`."""

from __future__ import annotations

import re
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
#: Types of elements that no argument and no result has: C has no type for them.
_NO_SCALARS = ("f16", "bf16", "complex<f32>", "complex<f64>")


@dataclass(frozen=True)
class Scalar:
    """A number: an integer, an index, or a float of 32 or 64 bits."""

    text: str

    @property
    def is_float(self) -> bool:
        return self.text in ("f32", "f64")

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
    """A type that Python cannot pass, such as a vector, a half or an unranked memref."""

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
    arguments, *results = split(text, "->") or [""]
    if len(results) != 1 or arguments[:1] + arguments[-1:] != "()":
        raise ValueError(f"'{text}' is not a type of a function: write (memref<?xf32>, i32) -> f32")
    (result,) = results
    return Function(_all(arguments[1:-1]), _all(result[1:-1] if result[0] == "(" else result))


def _all(text: str) -> tuple[Type, ...]:
    return tuple(one(part) for part in split(text))


def one(text: str) -> Type:
    text = text.strip()
    if text in SIZES and text not in _NO_SCALARS:
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
    found = _STRIDED.fullmatch(layouts[0]) if layouts else None
    if first not in SIZES or (layouts and not found):
        return None
    if not found:
        return MemRefType(text, first, tuple(shape))
    strides = tuple(map(_size, split(found[1])))
    if len(strides) != len(shape):
        return None
    return MemRefType(text, first, tuple(shape), strides, _size(found[2] or "0"))


def _size(text: str) -> int | None:
    return None if text.strip() == "?" else int(text)


def split(text: str, separator: str = ",") -> list[str]:
    """Splits at the separators outside of brackets. An arrow (->) closes no bracket."""
    parts, depth = [""], 0
    for token in re.findall(r"->|.", text, re.DOTALL):
        depth += (token in "(<[{") - (token in ")>]}")
        if token == separator and depth == 0:
            parts.append("")
        else:
            parts[-1] += token
    return [part.strip() for part in parts if part.strip()]
