"""Hostile text and false lengths are read in bounded time and memory."""

from __future__ import annotations

import struct

import pytest

from mgpu_rt._images import elf, find, nvidia
from mgpu_rt._images.model import ImageDescription
from tests.support.images import STRTAB, elf_of

SIZE = 1 << 20

BEGIN = b".version 8.0\n.target sm_90\n"
TEXTS = {
    "entries": b".entry k( ",
    "variables": b".global .b8 .b8 ",
    "variables of one name": b".global .b8 a",
    "spaces": b".entry  \t ",
    "parameters": b".param .b8 a",
    "numbers": b".global .b99999999999999999999 a;",
}


@pytest.mark.check
@pytest.mark.parametrize("text", TEXTS)
def test_repeated_text_is_read_in_bounded_time(text: str) -> None:
    words = TEXTS[text]
    (found,) = find.contents(BEGIN + words * (SIZE // len(words)), "the text").images
    assert found.kind == "PTX"


def test_parameters_end_before_the_next_entry() -> None:
    found = ImageDescription("PTX", BEGIN + b".entry a .entry b(.param .u32 x)")
    nvidia.describe_ptx(found)
    assert [(kernel.name, kernel.argument_bytes) for kernel in found.kernels] == [
        ("a", 0),
        ("b", 4),
    ]


def test_a_false_length_takes_no_memory() -> None:
    """The note contains 500 nested arrays. Each array claims to contain about as many elements as
    the note has bytes."""
    metadata = b"\xdd\x00\x0f\xff\xff" * 500 + bytes(1 << 20)
    note = struct.pack("<III", 0, len(metadata), 32) + metadata
    code = elf_of(elf.AMDGPU, [(STRTAB, 0, 0, 1)], 1, note)
    (found,) = find.contents(code, "the file").images
    assert found.kernels == []
