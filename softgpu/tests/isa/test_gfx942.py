"""Tests operations that gfx90a lacks: 8-bit floats, xf32 matrices, loads to workgroup memory, sums
as scratch addresses, bf16 atomics, and negated f64 matrices."""

from __future__ import annotations

import itertools
import random
import struct
from collections.abc import Iterable

import numpy as np
import pytest

from softgpu.tests.kernels.compare import bf16, from_bf16
from tests.support.suites import covering

from .device import CodeObject, Fault, Memory, assemble
from .float8 import BF8, FP8, NAN, decode, encode
from .matrix import LANES, Pattern, Shape, product
from .memory_cases import ADDRESSES, CELL, LDS_IN, LDS_OUT, REGION, SCRATCH_OUT, scratch_in
from .single import Batch, Result, Wave
from .test_matrix import KERNEL as MATRIX_KERNEL
from .test_matrix import OPERANDS, through_memory

pytestmark = pytest.mark.check

KINDS = {"fp8": FP8, "bf8": BF8}
ALL_LANES = 2**64 - 1


def bits(value: float) -> int:
    return struct.unpack("<I", struct.pack("<f", value))[0]


def single(word: int) -> float:
    return struct.unpack("<f", struct.pack("<I", word))[0]


def waves(lanes: Iterable[tuple[int, int, int, int]]) -> list[Wave]:
    rows = list(lanes)
    rows += [(0, 0, 0, 0)] * (-len(rows) % LANES)
    chunks = [rows[n : n + LANES] for n in range(0, len(rows), LANES)]
    return [Wave(ALL_LANES, 0, 0, (0, 0, 0), chunk) for chunk in chunks]


def run(text: str, given: list[Wave], extra: bytes = b"", **options: object) -> list[Result]:
    private = options.pop("private", 0)
    batch = Batch("gfx942")
    batch.add("one", text, **options)  # type: ignore[arg-type]
    code = batch.load()
    results = [code.run("one", [wave], extra, private)[0] for wave in given]  # type: ignore
    return results


def results_of(text: str, lanes: list[tuple[int, int, int, int]]) -> list[int]:
    found = itertools.chain.from_iterable(result.lanes for result in run(text, waves(lanes)))
    return list(found)[: len(lanes)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", range(4))
def test_every_8_bit_float_is_read(kind: str, part: int) -> None:
    form = f"_sdwa v14, v2 src0_sel:BYTE_{part}" if part else "_e32 v14, v2"
    lanes = [(code << 8 * part, 0, 0, 0) for code in range(256)]
    for code, got in enumerate(results_of(f"v_cvt_f32_{kind}{form}", lanes)):
        want = decode(KINDS[kind], code)
        value = single(got & 0xFFFFFFFF)
        assert value == want or (code == NAN and value != value), code


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("high", (0, 1))
def test_pairs_of_8_bit_floats_are_read(kind: str, high: int) -> None:
    form = f"_sdwa v[14:15], v2 src0_sel:WORD_{high}" if high else "_e32 v[14:15], v2"
    codes = [(code, (37 * code + 11) % 256) for code in range(256) if code != NAN]
    lanes = [((a | b << 8) << 16 * high, 0, 0, 0) for a, b in codes]
    found = results_of(f"v_cvt_pk_f32_{kind}{form}", lanes)
    for (a, b), got in zip(codes, found, strict=True):
        assert single(got & 0xFFFFFFFF) == decode(KINDS[kind], a)
        if b != NAN:
            assert single(got >> 32 & 0xFFFFFFFF) == decode(KINDS[kind], b)


def floats_around(kind: tuple[int, int], rng: random.Random) -> list[float]:
    """Returns the value of every code, the midpoints between neighbouring codes, the floats next to
    these midpoints, and random floats."""
    values = [decode(kind, code) for code in range(128)]
    middles = [single(bits((a + b) / 2)) for a, b in itertools.pairwise(values)]
    near = [single(bits(m) + d) for m in middles for d in (-1, 1)]
    more = [single(bits(2 * values[-1])), 1e30, 1e-30, float("inf"), float("nan")]
    edge = single(bits(values[-1] + (values[-1] - values[-2]) / 2))
    more += [edge, single(bits(edge) - 1), single(bits(edge) + 1)]
    some = [*values, *middles, *near, *more, *(rng.gauss(0, 30) for _ in range(64))]
    return [single(bits(v)) for value in some for v in (value, -value)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("high", (0, 1))
def test_pairs_of_8_bit_floats_are_written(kind: str, high: int) -> None:
    values, old = floats_around(KINDS[kind], random.Random(kind)), 0xA1B2C3D4
    form = " op_sel:[0,0,1]" * high
    lanes = [(bits(a), bits(b), 0, old) for a, b in zip(values, reversed(values), strict=True)]
    found = results_of(f"v_cvt_pk_{kind}_f32 v14, v2, v6{form}", lanes)
    for (a, b, _, _), got in zip(lanes, found, strict=True):
        pair = encode(KINDS[kind], single(a)) | encode(KINDS[kind], single(b)) << 8
        want = pair << 16 | old & 0xFFFF if high else old & 0xFFFF0000 | pair
        assert got & 0xFFFFFFFF == want, (single(a), single(b))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", range(4))
def test_8_bit_floats_are_rounded_by_chance(kind: str, part: int) -> None:
    rng, old, shift = random.Random(kind), 0xA1B2C3D4, {"fp8": 12, "bf8": 11}[kind]
    lanes = [(bits(x), rng.getrandbits(32), 0, old) for x in floats_around(KINDS[kind], rng)]
    form = f" op_sel:[0,0,{part & 1},{part >> 1}]" * bool(part)
    found = results_of(f"v_cvt_sr_{kind}_f32 v14, v2, v6{form}", lanes)
    for (x, noise, _, _), got in zip(lanes, found, strict=True):
        moved = x & 0xFF800000 | ((x & 0x7FFFFF) + (noise >> shift)) & 0x7FFFFF
        byte = encode(KINDS[kind], single(moved))
        want = old & ~(0xFF << 8 * part) & 0xFFFFFFFF | byte << 8 * part
        assert got & 0xFFFFFFFF == want, (single(x), noise)


MATRICES = [(16, 32, 8), (32, 16, 8)]


def matrix_kernel(instruction: str, count: int) -> str:
    registers = f"v[64:{63 + count}], v[2:3], v[4:5], v[32:{31 + count}]"
    loads = [f"global_load_dword v{32 + n}, v1, s[8:9] offset:{4 * n}" for n in range(count)]
    text = [f"{instruction} {registers}", "s_nop 7"]
    text += [f"global_store_dword v1, v{64 + n}, s[10:11] offset:{4 * n}" for n in range(count)]
    return MATRIX_KERNEL.format(
        name="matrix",
        operands=OPERANDS,
        lane=4 * count,
        loads="\n".join(loads),
        text="\n".join(text),
        extra=".amdhsa_accum_offset 96",
    )


def multiply(instruction: str, shape: Shape, a: np.ndarray, b: np.ndarray, c: np.ndarray):
    code = CodeObject(assemble("gfx942", matrix_kernel(instruction, shape.results)))
    words = [np.ascontiguousarray(x).view(np.uint32) for x in (a, b)]
    operands = np.hstack(words).tobytes() + c.tobytes()
    taken = through_memory("gfx942", code.kernel("matrix"), operands, c.nbytes)
    return np.frombuffer(taken, np.float32).reshape(c.shape)


@pytest.mark.parametrize(
    ("rows", "depth", "each", "first", "second"),
    covering(
        (*shape, *kinds) for shape in MATRICES for kinds in itertools.product(KINDS, repeat=2)
    ),
)
def test_matrices_of_8_bit_floats_are_multiplied(
    first: str, second: str, rows: int, depth: int, each: int
) -> None:
    shape, rng = Shape("f8", rows, depth, 1, each), np.random.default_rng(rows)
    values, codes = [], []
    for kind in (first, second):
        whole = rng.integers(-8, 9, (LANES, each)).astype(np.float64)
        values.append(whole)
        encoded = [encode(KINDS[kind], value) for value in whole.ravel()]
        codes.append(np.array(encoded, np.uint8).reshape(whole.shape))
    c = rng.integers(-100, 100, (LANES, shape.results)).astype(np.float32)
    instruction = f"v_mfma_f32_{rows}x{rows}x{depth}_{first}_{second}"
    got = multiply(instruction, shape, *codes, c)
    assert np.array_equal(got, product(shape, *values, c, Pattern()))


@pytest.mark.parametrize(("rows", "depth"), ((16, 8), (32, 4)))
def test_matrices_of_xf32_have_ten_bits_of_mantissa(rows: int, depth: int) -> None:
    shape, rng = Shape("xf32", rows, depth, 1, 2), np.random.default_rng(rows)
    a, b = (rng.integers(-60, 60, (LANES, 2)).astype(np.float32) for _ in range(2))
    c = rng.integers(-100, 100, (LANES, shape.results)).astype(np.float32)
    noise = np.float32(1 + 2.0**-20)
    got = multiply(f"v_mfma_f32_{rows}x{rows}x{depth}_xf32", shape, a * noise, b, c)
    assert np.array_equal(got, product(shape, a, b, c, Pattern()))


def test_loads_to_workgroup_memory_write_a_dword_for_each_lane() -> None:
    """Each active lane n writes a dword at M0 plus the offset plus 4 * n."""
    rng = random.Random(1)
    for name, size, signed in (
        ("ubyte", 1, False),
        ("sbyte", 1, True),
        ("ushort", 2, False),
        ("sshort", 2, True),
        ("dword", 4, False),
    ):
        region, execs = rng.randbytes(REGION), rng.getrandbits(64)
        buffer = Memory(REGION)
        buffer.write(region)
        text = f"s_mov_b32 m0, 64\n  global_load_lds_{name} v[10:11], off offset:4"
        text += "\n  s_waitcnt vmcnt(0)"
        wave = Wave(execs, 0, 0, (0, 0, 0), [(0, 0, 0, 0)] * LANES)
        zero = "".join(f"\n  ds_write_b32 v1, v19 offset:{n}" for n in range(0, CELL, 4))
        setup = ADDRESSES.format(shift=4) + "\n  v_mov_b32 v19, 0" + zero
        run(text, [wave], struct.pack("<Q", buffer.va), setup=setup, after=LDS_OUT, lds=REGION)
        want = bytearray(REGION)
        for lane in range(LANES):
            if execs >> lane & 1:
                part = region[lane * CELL + 4 : lane * CELL + 4 + size]
                value = int.from_bytes(part, "little", signed=signed)
                at = 68 + 4 * lane
                want[at : at + 4] = (value & 0xFFFFFFFF).to_bytes(4, "little")
        assert buffer.read(REGION) == bytes(want), name
        buffer.unmap()


def test_a_load_beyond_workgroup_memory_faults() -> None:
    buffer = Memory(REGION)
    text = f"s_mov_b32 m0, {REGION - 252}\n  global_load_lds_dword v[10:11], off"
    with pytest.raises(Fault, match="outside workgroup memory"):
        run(text, waves([(0, 0, 0, 0)]), struct.pack("<Q", buffer.va),
            setup=ADDRESSES.format(shift=4), lds=REGION)  # fmt: skip


def test_an_address_of_scratch_may_be_a_sum() -> None:
    rng, buffer = random.Random(2), Memory(REGION)
    region = rng.randbytes(REGION)
    buffer.write(region)
    text = """v_lshrrev_b32 v12, 4, v1
  v_and_b32 v12, 12, v12
  s_mov_b32 s40, 16
  scratch_load_dword v14, v12, s40 offset:4
  scratch_load_dword v15, off, s40 offset:8
  scratch_load_dword v16, off, off offset:12
  s_waitcnt vmcnt(0)"""
    setup = ADDRESSES.format(shift=4) + scratch_in("gfx942")
    lanes = [(0, 0, 0, 0)] * LANES
    (result,) = run(text, waves(lanes), struct.pack("<Q", buffer.va), setup=setup,
                    after=SCRATCH_OUT, private=CELL)  # fmt: skip
    for lane, got in enumerate(result.lanes):
        cell = region[lane * CELL :]
        want = [cell[at : at + 4] for at in ((lane * CELL >> 4 & 12) + 20, 24, 12)]
        assert got & (1 << 96) - 1 == int.from_bytes(b"".join(want), "little"), lane


@pytest.mark.parametrize("where", ("global", "flat", "ds"))
def test_bf16_is_added_in_memory(where: str) -> None:
    rng, buffer = np.random.default_rng(3), Memory(REGION)
    old = bf16(rng.normal(size=(LANES, CELL // 2)).astype(np.float32))
    data = bf16(rng.normal(size=(LANES, 2)).astype(np.float32))
    buffer.write(old.tobytes())
    text = {
        "global": "global_atomic_pk_add_bf16 v14, v[10:11], v2, off offset:8 sc0",
        "flat": "flat_atomic_pk_add_bf16 v14, v[10:11], v2 offset:8 sc0",
        "ds": "ds_pk_add_rtn_bf16 v14, v1, v2 offset:8",
    }[where]
    setup = ADDRESSES.format(shift=4) + (LDS_IN if where == "ds" else "")
    after = LDS_OUT if where == "ds" else ""
    words = data.view(np.uint32).ravel()
    lanes = [(int(word), 0, 0, 0) for word in words]
    (result,) = run(f"{text}\n  s_waitcnt vmcnt(0) lgkmcnt(0)", waves(lanes),
                    struct.pack("<Q", buffer.va), setup=setup, after=after,
                    lds=REGION if where == "ds" else 0)  # fmt: skip
    want = old.copy()
    want[:, 4:6] = bf16(from_bf16(old[:, 4:6]) + from_bf16(data))
    assert buffer.read(REGION) == want.tobytes()
    given_back = np.array([lane & 0xFFFFFFFF for lane in result.lanes], np.uint32)
    assert np.array_equal(given_back, old[:, 4:6].copy().view(np.uint32).ravel())


@pytest.mark.parametrize("signs", ((0, 0, 0), (1, 0, 0), (0, 1, 1)))
def test_f64_matrices_have_signs(signs: tuple[int, int, int]) -> None:
    """All lanes have the same factors, so only the signs change the result."""
    a, b, c = 3.0, 5.0, 7.0
    factors = [-1 if sign else 1 for sign in signs]
    want = factors[2] * c + 4 * factors[0] * a * factors[1] * b
    words = [struct.unpack("<Q", struct.pack("<d", x))[0] for x in (a, b, c)]
    form = f"neg:[{','.join(map(str, signs))}]"
    text = f"v_mfma_f64_4x4x4_4b_f64 v[14:15], v[2:3], v[6:7], v[10:11] {form}\n  s_nop 7"
    found = results_of(text, [(*words, 0)] * LANES)
    mask = (1 << 64) - 1
    assert {struct.unpack("<d", struct.pack("<Q", got & mask))[0] for got in found} == {want}
