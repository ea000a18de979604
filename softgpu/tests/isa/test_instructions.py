"""Compares the instructions that AMD's pseudocode does not check with exact arithmetic."""

from __future__ import annotations

import random
import re
import zlib

from . import oracle
from .device import TARGETS, on_targets
from .instructions import VECTOR, Vector
from .single import LANES, Batch, Loaded, Wave, random_waves

WIDE = {"v": "v[{}:{}]", "s": "s[{}:{}]"}
REGISTERS = (2, 6, 10)


def width_of(kind: str) -> int:
    """Returns the width of a type in bits; the types pf16 and pf32 are pairs of floats."""
    return int(re.sub(r"\D", "", kind)) * (2 if kind[0] == "p" else 1)


def register(file: str, number: int, kind: str) -> str:
    return WIDE[file].format(number, number + 1) if width_of(kind) == 64 else f"{file}{number}"


def vector_text(name: str, op: Vector) -> str:
    sources = op.src[:-1] if op.accumulates else op.src
    registers = [register("v", 14, op.dst)]
    registers += [register("v", r, k) for r, k in zip(REGISTERS, sources, strict=False)]
    return f"{name} {', '.join(registers)}"


def seeded(*parts: object) -> random.Random:
    return random.Random(zlib.crc32(repr(parts).encode()))


def ordered(kind: str, raw: int) -> int:
    """Converts a float's bits to an integer that increases with the float, so that differences
    count ulps."""
    width = width_of(kind)
    return -(raw & ((1 << (width - 1)) - 1)) if raw >> (width - 1) else raw


def close(kind: str, got: int, expected: int, tolerance: int) -> bool:
    if got == expected:
        return True
    if kind[0] == "p":  # two floats in one value
        part, half = kind[1:], width_of(kind) // 2
        mask = (1 << half) - 1
        return all(close(part, got >> n & mask, expected >> n & mask, tolerance) for n in (0, half))
    if kind[0] != "f":
        return False
    a, b = oracle.decode(kind, got), oracle.decode(kind, expected)
    if a != a or b != b:
        return a != a and b != b
    return tolerance > 0 and abs(ordered(kind, got) - ordered(kind, expected)) <= tolerance


def expected_lane(op: Vector, lane: tuple[int, int, int, int]) -> int:
    raw = [*lane[: len(op.src)]]
    if op.accumulates:
        raw[-1] = lane[3]
    values = [oracle.decode(k, r) for k, r in zip(op.src, raw, strict=False)]
    result = op.meaning(*values)
    return result if op.dst[0] == "p" else oracle.encode(op.dst, result)


def check_vector(name: str, op: Vector, waves: list[Wave], loaded: Loaded) -> int:
    width = width_of(op.dst)
    mask = (1 << width) - 1
    checked = 0
    for wave, result in zip(waves, loaded.run(name, waves), strict=True):
        assert (result.exec, result.vcc, result.scc) == (wave.exec, wave.vcc, wave.scc), name
        for n in range(LANES):
            got = result.lanes[n]
            if not wave.exec >> n & 1:
                assert got == wave.lanes[n][3], f"{name}: lane {n} does not run"
                continue
            want = expected_lane(op, wave.lanes[n])
            assert close(op.dst, got & mask, want, op.tolerance), (
                f"{name}: {[hex(x) for x in wave.lanes[n]]}: got {got & mask:#x}, want {want:#x}"
            )
            assert got >> max(width, 32) == wave.lanes[n][3] >> max(width, 32), name
            checked += 1
    return checked


@on_targets(*TARGETS, seldom=("gfx906", "gfx908", "gfx942"))
def test_vector_instructions_compute_exact_results(target: str) -> None:
    batch = Batch(target)
    ops = {n: op for n, op in VECTOR.items() if target in op.targets}
    for name, op in ops.items():
        batch.add(name, vector_text(name, op))
    loaded = batch.load()
    wrong = []
    for name, op in ops.items():
        try:
            check_vector(name, op, random_waves(seeded(name), list(op.src)), loaded)
        except AssertionError as error:
            wrong.append(str(error).splitlines()[0])
    assert not wrong, "\n".join(wrong)
