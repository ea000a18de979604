"""Tests the copy engine at the limits of its commands. The tests send the commands without HIP,
because each ROCr release sends different commands."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pytest

MIB = 1 << 20

#: Since gfx90a a linear copy has a 30-bit count, which ROCr 6.1 and later use.
LONG_COUNTS = (4 * MIB - 1, 4 * MIB, 4 * MIB + 1, 256 * MIB)


@pytest.fixture
def engine(alone: Callable[..., list[str]]) -> Callable[..., list[str]]:
    return functools.partial(alone, "engine")


def _copies(engine: Callable[..., list[str]], chip: str, sizes: tuple[int, ...]) -> list[int]:
    return [int(word) for word in engine(chip, "counts", *(size - 1 for size in sizes))]


@pytest.mark.check
def test_a_copy_of_gfx90a_counts_to_a_gibibyte(engine: Callable[..., list[str]]) -> None:
    assert _copies(engine, "gfx90a", LONG_COUNTS) == list(LONG_COUNTS)


@pytest.mark.check
def test_the_longest_copy_is_right(engine: Callable[..., list[str]]) -> None:
    assert _copies(engine, "gfx90a", (1 << 30,)) == [1 << 30]


@pytest.mark.parametrize("chip", ("gfx906", "gfx908"))
def test_older_engines_count_to_four_mebibytes(engine: Callable[..., list[str]], chip: str) -> None:
    assert _copies(engine, chip, (1, 4 * MIB)) == [1, 4 * MIB]


def test_commands_may_lie_across_the_end_of_the_ring(engine: Callable[..., list[str]]) -> None:
    assert engine("gfx90a", "wrap") == ["wrapped"]


def test_padding_is_skipped_by_its_length(engine: Callable[..., list[str]]) -> None:
    assert engine("gfx90a", "padding") == ["padded"]
