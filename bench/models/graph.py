"""A model's forward pass: linalg operations on named buffers, and their results in NumPy.

MLIR's ordinary passes lower each operation of linalg to one kernel. NumPy is needed only to
compute, not to print.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

#: The NumPy equivalent of an operation: computes the result from the operands' values.
Compute = Callable[..., "np.ndarray"]


#: A dimension that a program knows when it runs: the length of a sequence so far.
LENGTH = -1


@dataclass(frozen=True)
class Buffer:
    """A memref of f32."""

    name: str
    shape: tuple[int, ...]

    @property
    def type(self) -> str:
        sizes = ("?" if size == LENGTH else str(size) for size in self.shape)
        return f"memref<{'x'.join((*sizes, 'f32'))}>"

    def __str__(self) -> str:
        return f"%{self.name}"


@dataclass(frozen=True)
class Weight:
    """A buffer that is filled once, with numbers between -scale and scale."""

    buffer: Buffer
    scale: float


class Graph:
    """The operations of one forward pass from ``input`` to ``output``."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.input = Buffer("in", shape)
        self.output = self.input
        self.weights: list[Weight] = []
        #: Each pass takes caches that hold `LENGTH` rows, and makes caches with one more row.
        self.caches: list[Buffer] = []
        self.grown: list[Buffer] = []
        self.lines: list[str] = []
        self.kernels = 0
        self._results: list[Buffer] = []
        self._steps: list[tuple[Buffer, list[Buffer], Compute]] = []
        self._names = 0

    @property
    def temporaries(self) -> list[Buffer]:
        """Returns all buffers that are neither input, weight, cache nor output."""
        return [b for b in self._results if b is not self.output and b not in self.grown]

    def weight(self, shape: tuple[int, ...], scale: float) -> Buffer:
        """Adds a weight that no other layer uses."""
        buffer = Buffer(f"w{len(self.weights)}", shape)
        self.weights.append(Weight(buffer, scale))
        return buffer

    def compute(self, values: dict[Buffer, np.ndarray]) -> dict[Buffer, np.ndarray]:
        """Computes all buffers with NumPy, from the values of the input, the weights and the
        caches."""
        values = dict(values)
        for result, operands, step in self._steps:
            values[result] = step(*(values[operand] for operand in operands))
        return values

    # ---- operations: each returns its result, which becomes the model's output ----

    def map(
        self,
        operands: Sequence[tuple[Buffer, str]],
        result: str,
        body: str,
        compute: Compute,
        *,
        initial: float | None = None,
    ) -> Buffer:
        """Adds a reduction if ``initial`` is given, and otherwise an elementwise operation.

        An operand's letters name the loops that index the operand; the letters of ``result`` name
        the loops that index the result. In the body, the operands' elements are %a, %b, %c ... and
        the result's old element is %old. The body's last line is the new element's value; without a
        body, the value is %a.
        """
        sizes = {
            letter: size
            for buffer, letters in operands
            for letter, size in zip(letters, buffer.shape, strict=True)
        }
        out = self._result(tuple(sizes[letter] for letter in result), initial)
        loops = [*result, *(letter for letter in sizes if letter not in result)]
        maps = ", ".join(
            f"affine_map<({', '.join(loops)}) -> ({', '.join(letters)})>"
            for letters in (*(letters for _, letters in operands), result)
        )
        kinds = ", ".join('"parallel"' if letter in result else '"reduction"' for letter in loops)
        elements = [f"%{letter}: f32" for letter in "abcdefgh"[: len(operands)]]
        *before, last = body.splitlines() or [""]
        lines = [*before, f"%result = {last}"] if last else []
        lines.append(f"linalg.yield {'%result' if last else '%a'} : f32")
        self._operation(
            f"linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}",
            [buffer for buffer, _ in operands],
            out,
            "\n".join([f" {{\n^bb0({', '.join(elements)}, %old: f32):", *lines, "}"]),
        )
        return self._computed(out, [buffer for buffer, _ in operands], compute)

    def named(
        self,
        operation: str,
        operands: Sequence[Buffer],
        shape: tuple[int, ...],
        compute: Compute,
        *,
        initial: float,
    ) -> Buffer:
        """Adds a named operation of linalg that accumulates, such as linalg.matmul."""
        out = self._result(shape, initial)
        self._operation(f"linalg.{operation}", operands, out)
        return self._computed(out, operands, compute)

    def append(self, row: Buffer) -> Buffer:
        """Adds a row to a new cache, as two kernels: one copies the old rows. Before the pass runs,
        the value %length is the number of the old rows."""
        import numpy as np

        cache = Buffer(f"cache{len(self.caches)}", (LENGTH, *row.shape[1:]))
        out = self._result(cache.shape, None)
        self.caches.append(cache)
        self.grown.append(out)
        strides = [math.prod(row.shape[at + 1 :]) for at in range(len(row.shape))]
        offset, width = f"{out}_offset", f"{out}_width"
        self.lines.append(f"{width} = arith.constant {strides[0]} : index")
        self.lines.append(f"{offset} = arith.muli %length, {width} : index")
        parts = (
            (cache, "%length", "0", cache.type),
            (row, "1", offset, f"{row.type[:-1]}, strided<{strides}, offset: ?>>"),
        )
        for origin, count, first, kind in parts:
            part = f"%{self._name()}"
            sizes = f"[{', '.join([count, *map(str, row.shape[1:])])}]"
            place = f"offset: [{first}], sizes: {sizes}, strides: {strides}"
            self.lines += [
                f"{part} = memref.reinterpret_cast {out} to {place} : {out.type} to {kind}",
                f"linalg.copy ins({origin} : {origin.type}) outs({part} : {kind})",
            ]
            self.kernels += 1
        return self._computed(out, [cache, row], lambda *parts: np.concatenate(parts))

    def reshape(
        self, buffer: Buffer, groups: Sequence[Sequence[int]], shape: tuple[int, ...]
    ) -> Buffer:
        """Returns a view of the memory with fewer or more dimensions, without a kernel. Each group
        lists dimensions of the larger shape that together form one dimension of the smaller
        shape."""
        view = Buffer(self._name(), shape)
        indices = [list(group) for group in groups]
        if len(shape) < len(buffer.shape):
            operation = f"memref.collapse_shape {buffer} {indices}"
        else:
            operation = f"memref.expand_shape {buffer} {indices} output_shape {list(shape)}"
        self.lines.append(f"{view} = {operation} : {buffer.type} into {view.type}")
        self._steps.append((view, [buffer], lambda value: value.reshape(shape)))
        return view

    # ---- how operations are printed ----

    def _name(self) -> str:
        self._names += 1
        return f"t{self._names}"

    def _result(self, shape: tuple[int, ...], initial: float | None) -> Buffer:
        out = Buffer(self._name(), shape)
        self._results.append(out)
        if initial is not None:
            constant = f"{out}_initial"
            self.lines.append(f"{constant} = arith.constant {initial:e} : f32")
            self.lines.append(f"linalg.fill ins({constant} : f32) outs({out} : {out.type})")
            self.kernels += 1
        return out

    def _operation(
        self, head: str, operands: Sequence[Buffer], out: Buffer, tail: str = ""
    ) -> None:
        names = ", ".join(str(buffer) for buffer in operands)
        types = ", ".join(buffer.type for buffer in operands)
        self.lines.append(f"{head} ins({names} : {types}) outs({out} : {out.type}){tail}")
        self.kernels += 1

    def _computed(self, out: Buffer, operands: Sequence[Buffer], compute: Compute) -> Buffer:
        self._steps.append((out, list(operands), compute))
        self.output = out
        return out
