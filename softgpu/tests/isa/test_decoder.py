"""Compares the decoder and the printer with llvm-objdump, instruction by instruction."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable

import pytest

from tests.support.suites import sampled

from . import corpus, encodings
from .device import TARGETS, on_targets
from .objdump import Comparison, compare, compare_encodings


def agree(comparison: Comparison, record: pytest.FixtureRequest) -> None:
    """Fails with the first differences, if there are any; otherwise prints how many instructions
    and mnemonics agreed."""
    assert not comparison.differences, "\n".join(
        [f"{len(comparison.differences)} differences", *comparison.differences[:20]]
    )
    print(f"{record.node.name}: {comparison.count} instructions, {len(comparison.seen)} mnemonics")


def compared(target: str, images: Iterable[tuple[str, bytes]]) -> Comparison:
    total = Comparison()
    for name, image in images:
        total.update(compare(name, target, image))
    return total


@pytest.mark.check
@pytest.mark.parametrize("images", (corpus.programs, corpus.kernels))
def test_programs_decode_as_by_llvm(
    images: Callable[[str, int], Iterable[tuple[str, bytes]]], request: pytest.FixtureRequest
) -> None:
    """Decodes programs and the kernels of the whole-kernel tests, lowered for gfx90a."""
    agree(compared("gfx90a", images("gfx90a", 2)), request)


@pytest.mark.parametrize("target", sampled(TARGETS, ()))
@pytest.mark.parametrize("name", ("ocml", "ockl"))
def test_device_library_decodes_as_by_llvm(
    name: str, target: str, request: pytest.FixtureRequest
) -> None:
    agree(compare(name, target, corpus.kept_library(name, target, 2)), request)


@pytest.mark.check
@on_targets(*TARGETS)
def test_every_row_of_the_tables_decodes_as_by_llvm(
    target: str, request: pytest.FixtureRequest
) -> None:
    """Tests each opcode with random fields. If an opcode exists only in the short encoding, LLVM's
    decoder and softgpu's decoder must reject the long encoding of this opcode."""
    samples = list(encodings.samples(target, 6, random.Random(target)))
    comparison = compare_encodings(target, ((row.name, words) for row, words in samples))
    agree(comparison, request)
    decoded = {mnemonic.removesuffix("_e32").removesuffix("_e64") for mnemonic in comparison.seen}
    assert decoded == {row.name for row, _ in samples}


@pytest.mark.check_isa
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("opt", corpus.LEVELS)
def test_all_programs_decode_as_by_llvm(
    target: str, opt: int, request: pytest.FixtureRequest
) -> None:
    images = itertools.chain(corpus.programs(target, opt), corpus.kernels(target, opt))
    agree(compared(target, images), request)


@pytest.mark.check_isa
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("opt", corpus.LIBRARY_LEVELS)
@pytest.mark.parametrize("name", corpus.LIBRARIES)
def test_all_device_libraries_decode_as_by_llvm(
    name: str, target: str, opt: int, request: pytest.FixtureRequest
) -> None:
    agree(compare(f"{name} -O{opt}", target, corpus.kept_library(name, target, opt)), request)
