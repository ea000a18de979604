"""Tests sparse matrices of gfx942: only two of every four consecutive elements in a row of A are
stored.

The indices lie where AMD's matrix instruction calculator places them. This test computes the
results independently of the emulator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pytest

from softgpu.tests.kernels.compare import bf16

from .device import BEGIN, CodeObject, assemble
from .float8 import BF8, FP8, encode
from .matrix import LANES, Shape
from .test_matrix import through_memory

pytestmark = pytest.mark.check

FLOATS8 = {"fp8": FP8, "bf8": BF8}


@dataclass(frozen=True)
class Sparse:
    """A shape of D (rows × rows) += A (rows × depth) B (depth × rows). A and B may have different
    types."""

    rows: int
    depth: int
    kinds: tuple[str, str]

    @property
    def name(self) -> str:
        return f"sparse_{self.rows}_{'_'.join(self.kinds)}"

    @property
    def instruction(self) -> str:
        kinds = "_".join(self.kinds) if self.kinds[0] in FLOATS8 else self.kinds[0]
        result = "i32" if self.kinds[0] == "i8" else "f32"
        return f"v_smfmac_{result}_{self.rows}x{self.rows}x{self.depth}_{kinds}"

    @property
    def stored(self) -> int:
        """Returns how many elements of A a lane holds; the lane holds twice as many elements of
        B."""
        return self.rows * self.depth // LANES // 2

    @property
    def sets(self) -> int:
        """Returns how many sets of indices one register can contain."""
        return 32 // (2 * self.stored)

    @property
    def dense(self) -> Shape:
        return Shape(self.kinds[0], self.rows, self.depth, 1, 2 * self.stored)

    def product(
        self, a: np.ndarray, b: np.ndarray, d: np.ndarray, indices: np.ndarray, first: int
    ) -> np.ndarray:
        """Returns the results in all lanes. A register contains several sets of indices; the
        product uses the set with number ``first``."""
        lane, element = np.meshgrid(np.arange(LANES), np.arange(self.stored), indexing="ij")
        shift = 2 * (first * self.stored + element)
        chosen = indices[:, None].astype(np.int64) >> shift & 3
        depth = 2 * self.stored * (lane // self.rows) + 4 * (element // 2) + chosen
        left = np.zeros((self.rows, self.depth))
        np.add.at(left, (lane % self.rows, depth), a)
        right, sums = np.zeros((self.rows, self.depth)), np.zeros((self.rows, self.rows))
        _, column, k = self.dense.operand_at()
        _, *cell = self.dense.result_at()
        right[column, k], sums[tuple(cell)] = b, d
        return (sums + left @ right.T)[tuple(cell)]


SIXTEEN_BITS = [("f16", "f16"), ("bf16", "bf16")]
EIGHT_BITS = [("i8", "i8"), *((a, b) for a in FLOATS8 for b in FLOATS8)]
SHAPES = [
    *(Sparse(rows, 512 // rows, kinds) for rows in (16, 32) for kinds in SIXTEEN_BITS),
    *(Sparse(rows, 1024 // rows, kinds) for rows in (16, 32) for kinds in EIGHT_BITS),
]


def encoded(kind: str, whole: np.ndarray) -> bytes:
    if kind == "bf16":
        return bf16(whole.astype(np.float32)).tobytes()
    if kind in FLOATS8:
        codes = {value: encode(FLOATS8[kind], value) for value in np.unique(whole).tolist()}
        return np.array([codes[value] for value in whole.ravel().tolist()], np.uint8).tobytes()
    return whole.astype({"f16": np.float16, "i8": np.int8}[kind]).tobytes()


# Each lane has 8 dwords: A in v[2:3], the indices in v4, B in v[6:9]. C and D start at v32.
KERNEL = (
    BEGIN
    + """\
  s_load_dwordx4 s[8:11], s[0:1], 0x0
  s_waitcnt lgkmcnt(0)
  v_lshlrev_b32 v1, 5, v0
  global_load_dwordx4 v[2:5], v1, s[8:9]
  global_load_dwordx4 v[6:9], v1, s[8:9] offset:16
  s_add_u32 s8, s8, {operands}
  s_addc_u32 s9, s9, 0
  v_mul_u32_u24 v1, {lane}, v0
  {text}
  s_endpgm
.rodata
.p2align 6
.amdhsa_kernel {name}
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_next_free_vgpr 64
  .amdhsa_next_free_sgpr 16
  .amdhsa_accum_offset 64
.end_amdhsa_kernel
"""
)
OPERANDS = 32 * LANES


def patterns(shape: Sparse) -> list[tuple[int, int]]:
    """Returns all defined combinations of cbsz and abid."""
    return [(cbsz, abid) for cbsz in range(4) for abid in range(shape.sets)]


def kernel(shape: Sparse) -> str:
    """Returns a kernel that runs all patterns and stores their results one after another."""
    count, text = shape.dense.results, []
    for cbsz, abid in patterns(shape):
        at = [f"v{32 + n}, v1, s[8:9] offset:{4 * n}" for n in range(count)]
        text += [f"global_load_dword {where}" for where in at] + ["s_waitcnt vmcnt(0)"]
        operands = f"v[32:{31 + count}], v[2:3], v[6:9], v4 cbsz:{cbsz} abid:{abid}"
        text += [f"{shape.instruction} {operands}", "s_nop 7", "s_nop 7"]
        text += [f"global_store_dword v1, v{32 + n}, s[10:11] offset:{4 * n}" for n in range(count)]
        text += [f"s_add_u32 s10, s10, {4 * LANES * count}", "s_addc_u32 s11, s11, 0"]
    return KERNEL.format(name=shape.name, operands=OPERANDS, lane=4 * count, text="\n".join(text))


@lru_cache
def image() -> bytes:
    """Assembles all kernels together, because this takes no longer than the assembly of one
    kernel."""
    return assemble("gfx942", "".join(map(kernel, SHAPES)))


def run(shape: Sparse, a: bytes, b: bytes, indices: np.ndarray, d: np.ndarray) -> np.ndarray:
    """Returns the results of all patterns."""
    code = CodeObject(image())
    words = [np.frombuffer(data, np.uint32).reshape(LANES, -1) for data in (a, b)]
    gap = np.zeros((LANES, 1), np.uint32)
    operands = np.hstack([words[0], indices[:, None], gap, words[1]]).tobytes() + d.tobytes()
    size = len(patterns(shape)) * d.nbytes
    taken = through_memory("gfx942", code.kernel(shape.name), operands, size)
    code.memory.unmap()
    return np.frombuffer(taken, d.dtype).reshape(-1, *d.shape)


def any_indices(rng: np.random.Generator) -> np.ndarray:
    """Returns random indices, including equal and descending pairs."""
    return rng.integers(0, 2**32, LANES, np.uint32)


def ascending(rng: np.random.Generator) -> np.ndarray:
    """Returns ascending pairs of indices, as in a compressed matrix."""
    pairs = np.array([low | high << 2 for low in range(4) for high in range(low + 1, 4)])
    some = pairs[rng.integers(0, len(pairs), (LANES, 8))].astype(np.uint32)
    return np.bitwise_or.reduce(some << (4 * np.arange(8, dtype=np.uint32)), axis=1)


@pytest.mark.parametrize("make", (ascending, any_indices))
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.instruction)
def test_sparse_products_are_exact(
    shape: Sparse, make: Callable[[np.random.Generator], np.ndarray]
) -> None:
    """The numbers are integers, so their sums are exact in any order."""
    rng = np.random.default_rng(SHAPES.index(shape))
    a, b = (rng.integers(-8, 9, (LANES, n * shape.stored)).astype(np.float64) for n in (1, 2))
    integers = shape.kinds[0] == "i8"
    d = rng.integers(-100, 100, (LANES, shape.dense.results))
    d = d.astype(np.int32 if integers else np.float32)
    indices = make(rng)
    results = run(shape, encoded(shape.kinds[0], a), encoded(shape.kinds[1], b), indices, d)
    for (cbsz, abid), got in zip(patterns(shape), results, strict=True):
        want = shape.product(a, b, d, indices, 0 if cbsz else abid)
        assert np.array_equal(got, want), f"cbsz:{cbsz} abid:{abid}"


def test_sums_of_integers_wrap() -> None:
    shape, d = Sparse(16, 64, ("i8", "i8")), np.full((LANES, 4), 2**31 - 1, np.int32)
    least = np.full(LANES * shape.stored, -128, np.int8).tobytes()
    results = run(shape, least, 2 * least, np.zeros(LANES, np.uint32), d)
    assert set(results.ravel().tolist()) == {2**31 - 1 + 32 * 128 * 128 - 2**32}


def test_values_that_no_index_names_are_ignored() -> None:
    """The instruction must skip a missing element instead of multiplying by zero, because zero
    times infinity is NaN."""
    shape = Sparse(16, 32, ("f16", "f16"))
    b = np.tile(np.array([np.inf, 1, 2, np.nan], np.float16), (LANES, 2))
    a, indices = np.ones((LANES, 4), np.float16), np.full(LANES, 0x99999999, np.uint32)
    results = run(shape, a.tobytes(), b.tobytes(), indices, np.zeros((LANES, 4), np.float32))
    assert set(results.ravel().tolist()) == {8 * (1 + 2)}
