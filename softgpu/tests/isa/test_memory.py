"""Compares loads, stores and atomics with AMD's pseudocode."""

from __future__ import annotations

import random
import struct

import pytest

from . import oracle
from .device import TARGETS, Memory
from .memory_cases import CELL, OFFSET, REGION, MemoryCase, all_memory_cases, expected
from .single import LANES, WAVES, Batch, Wave, random_waves, value
from .test_instructions import close, seeded

QUICK_WAVES = 2


def float_kind(name: str) -> str:
    """Returns the type of a float atomic, or an empty text for any other instruction."""
    for kind in ("f16", "f32", "f64"):
        if name.endswith(kind) and any(word in name for word in ("add_", "min_", "max_")):
            return "pf16" if "pk_" in name else kind
    return ""


def word(case: MemoryCase, rng: random.Random, width: int) -> int:
    """Returns a special value. For minimum and maximum, excludes NaN and zero, because the
    pseudocode always returns the second operand for these values. If one operand is a NaN, the
    instruction returns the other operand. The instruction treats -0 as less than +0."""
    kind = float_kind(case.row.name)
    while True:
        bits = value(rng, width)
        if "add" in case.row.name or not kind or abs(oracle.decode(kind, bits)) > 0:
            return bits


def random_region(case: MemoryCase, wave: Wave, rng: random.Random) -> bytes:
    """Returns a region of special values. In every second lane, the memory contains the value for
    which compare-and-swap looks."""
    width = 64 if any(w in case.row.name for w in ("x2", "64", "b128")) else 32
    words = [
        word(case, rng, width).to_bytes(width // 8, "little") for _ in range(8 * REGION // width)
    ]
    region = bytearray(b"".join(words))
    if "cmps" in case.row.name:
        for n in range(0, LANES, 2):
            size = width // 8
            data = wave.lanes[n][0].to_bytes(16, "little")
            wanted = data[:size] if case.row.family == "ds" else data[size : 2 * size]
            at = n * CELL + OFFSET
            region[at : at + size] = wanted
    return bytes(region)


def is_same(kind: str, a: int, b: int, size: int) -> bool:
    """Returns true for equal bits, and for two NaNs if the instruction computes floats."""
    if a == b or not kind:
        return a == b
    width = 64 if kind == "f64" else 32
    mask = (1 << width) - 1
    return all(close(kind, a >> n & mask, b >> n & mask, 0) for n in range(0, 8 * size, width))


def difference(case: MemoryCase, wave: Wave, region: bytes, lanes: list[int], after: bytes) -> str:
    want_lanes, want = expected(case, wave, region)
    kind = float_kind(case.row.name)
    for n in range(LANES):
        if not is_same(kind, lanes[n], want_lanes[n], 16):
            return f"{case.name}: lane {n} loads {lanes[n]:#x}, want {want_lanes[n]:#x}"
    for at in range(0, REGION, 8):
        a, b = (int.from_bytes(x[at : at + 8], "little") for x in (after, want))
        if not is_same(kind, a, b, 8):
            old, data = region[at : at + 8].hex(), hex(wave.lanes[at // CELL][0])
            return f"{case.name}: byte {at} was {old}, data {data}: {a:#x}, want {b:#x}"
    return ""


def check(target: str, seed: str, waves: int) -> None:
    cases = list(all_memory_cases(target))
    batch = Batch(target)
    for case in cases:
        lds = REGION if case.row.family == "ds" else 0
        batch.add(case.name, case.text, case.setup, case.after, lds)
    code = batch.load()
    buffer = Memory(REGION * WAVES)
    wrong = []
    for case in cases:
        rng = seeded(case.name, seed)
        inputs = random_waves(rng, ["b64", "b64", "b64"], waves)
        inputs = [with_data(case, wave, rng) for wave in inputs]
        regions = [random_region(case, wave, rng) for wave in inputs]
        buffer.write(b"".join(regions))
        private = CELL if case.row.family == "scratch" else 0
        results = code.run(case.name, inputs, struct.pack("<Q", buffer.va), private)
        for n, (wave, result) in enumerate(zip(inputs, results, strict=True)):
            after = buffer.read(REGION, n * REGION)
            if (result.exec, result.scc) != (wave.exec, wave.scc):
                wrong.append(f"{case.name} changes EXEC or SCC")
            elif text := difference(case, wave, regions[n], result.lanes, after):
                wrong.append(text)
            else:
                continue
            break
    assert not wrong, "\n".join([f"{len(wrong)} of {len(cases)} differ", *wrong[:20]])
    print(f"{target}: {len(cases)} cases agree")


def with_data(case: MemoryCase, wave: Wave, rng: random.Random) -> Wave:
    """Sets 128 bits of data in each lane. Even lanes get special 32-bit values and odd lanes get
    special 64-bit values, unless the instruction computes floats."""
    widths = {"f32": (32, 32), "f64": (64, 64)}.get(float_kind(case.row.name), (32, 64))
    for n, lane in enumerate(wave.lanes):
        width = widths[n % 2]
        data = sum(word(case, rng, width) << at for at in range(0, 128, width))
        wave.lanes[n] = (data, *lane[1:])
    return wave


@pytest.mark.check_isa
def test_memory_instructions_follow_the_pseudocode() -> None:
    check("gfx90a", "quick", QUICK_WAVES)


@pytest.mark.check_isa
@pytest.mark.parametrize("target", TARGETS)
def test_more_memory_instructions_follow_the_pseudocode(target: str) -> None:
    check(target, "more", 8)


@pytest.mark.check
def test_floats_are_known_by_their_names() -> None:
    assert float_kind("ds_add_rtn_f32") == "f32"
    assert float_kind("global_atomic_pk_add_f16") == "pf16"
    assert float_kind("ds_read_b32") == ""
    assert oracle.decode("f32", 0x3F800000) == 1
