"""Computes what matrix instructions store in a wave's registers.

A wave stores a matrix distributed over its lanes. The layouts follow AMD's matrix instruction
calculator: its tables, and its README on CBSZ, ABID and BLGP. This file is written independently of
the emulator.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softgpu.tests.kernels.compare import bf16, from_bf16

LANES = 64


@dataclass(frozen=True)
class Shape:
    """In each block, D (rows × rows) = A (rows × depth) B (depth × rows) + C.

    A Shape describes one matrix instruction. A lane contains ``each`` elements of A and of B, which
    are neighbours along the depth.
    """

    kind: str
    rows: int
    depth: int
    blocks: int
    each: int

    @property
    def name(self) -> str:
        return f"mfma_{self.kind}_{self.rows}x{self.rows}x{self.depth}_{self.blocks}"

    @property
    def instruction(self) -> str:
        # gfx90a's additional bf16 instructions have four elements in a lane, and a name suffix.
        later = "_1k" if self.kind == "bf16" and self.each == 4 else ""
        return f"v_mfma_{self.result}_{self.rows}x{self.rows}x{self.depth}{self.kind}{later}"

    @property
    def instruction_of_gfx942(self) -> str:
        """Returns gfx942's name of the instruction; the name includes the number of blocks."""
        blocks = f"{self.blocks}b_" if self.blocks > 1 else ""
        return f"v_mfma_{self.result}_{self.rows}x{self.rows}x{self.depth}_{blocks}{self.kind}"

    @property
    def result(self) -> str:
        return {"i8": "i32", "f64": "f64"}.get(self.kind, "f32")

    @property
    def results(self) -> int:
        return self.rows * self.rows * self.blocks // LANES

    def operand_at(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns three arrays for the elements of A in each lane: block, row and depth. For B, the
        second array contains columns instead of rows."""
        lane, element = np.meshgrid(np.arange(LANES), np.arange(self.each), indexing="ij")
        group = lane // self.rows
        block, depth = group % self.blocks, group // self.blocks
        return block, lane % self.rows, depth * self.each + element

    def result_at(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns the block, row and column of each lane's results."""
        lane, register = np.meshgrid(np.arange(LANES), np.arange(self.results), indexing="ij")
        if self.kind == "f64" and self.rows == 4:
            return lane // 4 % 4, lane // 16, lane % 4
        if self.kind == "f64":
            return 0 * lane, 4 * register + lane // 16, lane % 16
        if self.rows == 4:
            return lane // 4, register, lane % 4
        if self.rows == 16:
            return register // 4, 4 * (lane // 16) + register % 4, lane % 16
        within = register % 16
        row = 8 * (within // 4) + 4 * (lane // 32) + within % 4
        return register // 16, row, lane % 32


TYPES: dict[str, type] = {
    "f16": np.float16,
    "bf16": np.uint16,
    "f32": np.float32,
    "f64": np.float64,
    "i8": np.int8,
    "i32": np.int32,
}


#: Shapes that the chips gfx908 and gfx90a support.
SINCE_GFX908 = [
    Shape("f32", 32, 1, 2, 1),
    Shape("f32", 16, 1, 4, 1),
    Shape("f32", 4, 1, 16, 1),
    Shape("f32", 32, 2, 1, 1),
    Shape("f32", 16, 4, 1, 1),
    Shape("f16", 32, 4, 2, 4),
    Shape("f16", 16, 4, 4, 4),
    Shape("f16", 4, 4, 16, 4),
    Shape("f16", 32, 8, 1, 4),
    Shape("f16", 16, 16, 1, 4),
    Shape("i8", 32, 4, 2, 4),
    Shape("i8", 16, 4, 4, 4),
    Shape("i8", 4, 4, 16, 4),
    Shape("i8", 32, 8, 1, 4),
    Shape("i8", 16, 16, 1, 4),
    Shape("bf16", 32, 2, 2, 2),
    Shape("bf16", 16, 2, 4, 2),
    Shape("bf16", 4, 2, 16, 2),
    Shape("bf16", 32, 4, 1, 2),
    Shape("bf16", 16, 8, 1, 2),
]
SINCE_GFX90A = [
    Shape("bf16", 32, 4, 2, 4),
    Shape("bf16", 16, 4, 4, 4),
    Shape("bf16", 4, 4, 16, 4),
    Shape("bf16", 32, 8, 1, 4),
    Shape("bf16", 16, 16, 1, 4),
    Shape("f64", 16, 4, 1, 1),
    Shape("f64", 4, 4, 4, 1),
]


#: gfx942 supports the earlier shapes, with two exceptions: gfx908's bf16 shapes, and gfx908's i8
#: shapes with one block. gfx942 adds two i8 shapes.
OF_GFX942 = [
    *(shape for shape in SINCE_GFX908 if shape.kind in ("f32", "f16")),
    *(shape for shape in SINCE_GFX908 if shape.kind == "i8" and shape.blocks > 1),
    *SINCE_GFX90A,
    Shape("i8", 32, 16, 1, 8),
    Shape("i8", 16, 32, 1, 8),
]


def numbers(rng: np.random.Generator, kind: str, shape: tuple[int, ...]) -> np.ndarray:
    """Returns whole numbers, whose sums are exact in any order."""
    if kind == "i8":
        return rng.integers(-128, 128, shape).astype(np.int8)
    if kind == "i32":
        return rng.integers(-(2**31), 2**31, shape, np.int32)
    whole = rng.integers(-60, 60, shape).astype(np.float32)
    return bf16(whole) if kind == "bf16" else whole.astype(TYPES[kind])


#: Maps MLIR's name of each pattern to a list: entry n is the lane from which lane n reads B. In
#: an instruction, blgp is the position of the pattern in PATTERNS.
PATTERNS = {
    "none": [*range(64)],
    "bcast_first_32": 2 * [*range(32)],
    "bcast_second_32": 2 * [*range(32, 64)],
    "rotate_16_right": [*range(16, 64), *range(16)],
    "bcast_first_16": 4 * [*range(16)],
    "bcast_second_16": 4 * [*range(16, 32)],
    "bcast_third_16": 4 * [*range(32, 48)],
    "bcast_fourth_16": 4 * [*range(48, 64)],
}


@dataclass(frozen=True)
class Pattern:
    """All blocks in a group of ``2 ** cbsz`` blocks use A of block ``abid`` in the group. ``blgp``
    names the pattern by which lanes read elements of B from other lanes."""

    cbsz: int = 0
    abid: int = 0
    blgp: str = "none"

    def __str__(self) -> str:
        if self == Pattern():
            return ""
        return f"cbsz:{self.cbsz} abid:{self.abid} blgp:{list(PATTERNS).index(self.blgp)}"


def product(
    shape: Shape, a: np.ndarray, b: np.ndarray, c: np.ndarray, pattern: Pattern
) -> np.ndarray:
    """Computes each lane's results from the lanes' inputs; in every array, row n belongs to lane
    n."""
    wide = TYPES[shape.result]
    operand, result = shape.operand_at(), shape.result_at()
    blocks_a, blocks_b = (np.zeros((shape.blocks, shape.rows, shape.depth), wide) for _ in range(2))
    sums = np.zeros((shape.blocks, shape.rows, shape.rows), wide)
    blocks_a[operand] = from_bf16(a) if shape.kind == "bf16" else a
    blocks_b[operand] = (from_bf16(b) if shape.kind == "bf16" else b)[PATTERNS[pattern.blgp]]
    sums[result] = c
    each = 2**pattern.cbsz
    sources = [block // each * each + pattern.abid for block in range(shape.blocks)]
    return (sums + np.einsum("bik,bjk->bij", blocks_a[sources], blocks_b))[result]
