"""Compares single arithmetic instructions with AMD's pseudocode."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from .cases import VECTOR, Case, all_cases, differs, expected_scalar, expected_vector, width_of
from .device import TARGETS
from .instructions import tolerance
from .single import LANES, WAVES, Batch, Loaded, Result, Wave, limit_waves, random_waves
from .test_instructions import close, seeded

QUICK_WAVES = 1
Draw = Callable[[random.Random, list[str], int], list[Wave]]


def loaded(target: str, cases: list[Case]) -> Loaded:
    batch = Batch(target)
    for case in cases:
        batch.add(case.name, case.text)
    return batch.load()


def difference(case: Case, wave: Wave, got: Result) -> str:
    """Describes the first mistake in one wave; returns an empty text if the wave has no mistake."""
    vector = case.row.family in VECTOR
    want = expected_vector(case, wave) if vector else expected_scalar(case, wave)
    for name in ("exec", "vcc", "scc"):
        a, b = getattr(got, name), getattr(want, name)
        if a != b:
            return f"{case.name}: {name} is {a:#x}, want {b:#x} of {wave}"[:1000]
    if case.dst not in ("SDST", "MASK") and got.scalar != want.scalar:
        operands = [hex(s) for s in wave.scalars]
        return f"{case.name} {operands} scc {wave.scc}: {got.scalar:#x}, want {want.scalar:#x}"
    if not vector or case.dst in ("SDST", "MASK"):
        return ""
    mask = (1 << (16 if case.result == "b16" else width_of(case.dst))) - 1
    for n in range(LANES):
        if not wave.exec >> n & 1:
            if got.lanes[n] != wave.lanes[n][3]:
                return f"{case.name}: lane {n} does not run and has changed"
        elif not differs(case, wave, n):
            a, b = got.lanes[n] & mask, want.lanes[n] & mask
            if not close(case.result, a, b, tolerance(case.name)):
                operands = [hex(x) for x in wave.lanes[n]]
                return f"{case.name} {operands} vcc {wave.vcc >> n & 1}: {a:#x}, want {b:#x}"
    return ""


def check(target: str, seed: str, waves: int, draw: Draw = random_waves) -> None:
    """Compares each instruction in `waves` waves. A wave tries a scalar instruction only once, so
    more waves run the scalar instructions."""
    cases = list(all_cases(target))
    code = loaded(target, cases)
    wrong = []
    for case in cases:
        count = waves if case.row.family in VECTOR else WAVES
        inputs = draw(seeded(case.name, seed), case.kinds, count)
        for wave, result in zip(inputs, code.run(case.name, inputs), strict=True):
            if text := difference(case, wave, result):
                wrong.append(text)
                break
    assert not wrong, "\n".join([f"{len(wrong)} of {len(cases)} differ", *wrong[:20]])
    print(f"{target}: {len(cases)} cases agree")


@pytest.mark.check
def test_instructions_follow_the_pseudocode() -> None:
    check("gfx90a", "quick", QUICK_WAVES)


def test_a_maximum_of_equal_operands_is_the_first() -> None:
    """The random operands are never equal."""
    cases = [case for case in all_cases("gfx90a") if case.name in ("s_max_i32", "s_max_u32")]
    wave = Wave(1, 0, 0, (7, 7, 0), [(0, 0, 0, 0)] * LANES)
    code = loaded("gfx90a", cases)
    for case in cases:
        (result,) = code.run(case.name, [wave])
        assert difference(case, wave, result) == ""
        assert result.scc == 1


@pytest.mark.check_isa
def test_instructions_follow_the_pseudocode_at_limits() -> None:
    check("gfx90a", "limits", 1, limit_waves)


@pytest.mark.check_isa
@pytest.mark.parametrize("target", TARGETS)
def test_instructions_follow_the_pseudocode_at_more_limits(target: str) -> None:
    check(target, "more limits", 8, limit_waves)


@pytest.mark.check_isa
@pytest.mark.parametrize("seed", ("first", "second"))
@pytest.mark.parametrize("target", TARGETS)
def test_more_instructions_follow_the_pseudocode(target: str, seed: str) -> None:
    check(target, seed, 8)
