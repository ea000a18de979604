"""In each file, all entries of one table point to the same 1 MB of bytes. A reader must
nevertheless end soon.

A reader that does not limit its reads would need many minutes for each file, and days for some
files.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from mgpu_rt._images import elf, find, image, nvidia
from mgpu_rt._images.budget import Budget, BudgetExceeded, Counted
from mgpu_rt._images.model import ImageDescription
from tests.support.images import HEADER, PROGBITS, SECTION, SEGMENT, STRTAB, SYMTAB, elf_of
from tests.support.suites import in_check

SIZE = 1 << 20


def _shared_notes() -> bytes:
    small = struct.pack("<III4s", 4, 0, 33, b"AMD")
    return elf_of(elf.AMDGPU, [(STRTAB, 0, 0, 1)], 30_000, small * (SIZE // 2 // len(small)))


def _long_names() -> bytes:
    """The name of each section is a megabyte long."""
    content = b"a" * (SIZE // 2)
    return elf_of(elf.AMDGPU, [(STRTAB, 0, HEADER.size, len(content))] * 16_000, content=content)


def _long_symbols() -> bytes:
    """The name of each symbol is a megabyte long."""
    names = b"\0.symtab\0" + b"a" * (SIZE // 2) + b"\0"
    symbols = struct.pack("<IBBHQQ", 9, 0, 0, 1, 0, 4) * (SIZE // 2 // 24)
    begin = HEADER.size
    rows = [(SYMTAB, 0, begin + len(names), len(symbols)), (STRTAB, 0, begin, len(names))]
    return elf_of(elf.AMDGPU, rows, content=names + symbols, names=1)


def _shared_sections() -> bytes:
    """Returns an ELF file of the host in which each of 16,000 sections covers the whole content."""
    return elf_of(62, [(PROGBITS, elf.ALLOC, 0, SIZE // 2)] * 16_000, content=bytes(SIZE // 2))


def _headers_everywhere() -> bytes:
    """The host's data contains many code objects. Each code object has a table of 60,000 rows with
    a damaged row in the middle."""
    table = bytes(20_000 * SECTION.size) + b"\xff" * SECTION.size
    table += bytes(30_000 * SECTION.size)
    one = HEADER.pack(
        *(b"\x7fELF\x02\x01\x01" + bytes(9), 3, elf.AMDGPU, 1, 0, 0, 0, 0x500),
        *(HEADER.size, SEGMENT.size, 0, SECTION.size, 60_000, 0),
    )
    content = one * (SIZE // len(one)) + table
    return elf_of(62, [(PROGBITS, elf.ALLOC, HEADER.size, SIZE)], content=content)


def _bundle_of_itself() -> bytes:
    entries = 1000
    one = struct.pack("<QQQ", 0, SIZE, 0)
    head = image.BUNDLE_MAGIC + struct.pack("<Q", entries) + one * entries
    return head + _long_names()[: SIZE - len(head)] + bytes(SIZE)


def _bundle_of_one() -> bytes:
    """Returns a bundle whose entries are all the same code object."""
    entries, code = 1000, elf_of(elf.AMDGPU, [(STRTAB, 0, 0, 1)] * 30_000)
    start = len(image.BUNDLE_MAGIC) + 8 + 24 * entries
    one = struct.pack("<QQQ", start, len(code), 0)
    return image.BUNDLE_MAGIC + struct.pack("<Q", entries) + one * entries + code


HOSTILE: list[Callable[[], bytes]] = [
    _shared_notes,
    _long_names,
    _long_symbols,
    _shared_sections,
    _headers_everywhere,
    _bundle_of_itself,
    _bundle_of_one,
]


#: Files whose reader reaches its limit in under half a second.
QUICK = (_long_names, _long_symbols, _bundle_of_itself)


@pytest.mark.parametrize(
    "make",
    in_check(HOSTILE, lambda make: make not in QUICK),
    ids=lambda make: make.__name__.strip("_"),
)
def test_overlapping_parts_are_read_in_bounded_time(make: Callable[[], bytes]) -> None:
    with pytest.raises(find.NothingFound, match="refers to the same bytes too often"):
        find.contents(make(), "the file")


@pytest.mark.check
def test_an_image_by_itself_is_called_damaged() -> None:
    found = image.at(_shared_notes())
    assert found and found.damage == "it refers to the same bytes too often"


BEGIN = b".version 8.0\n.target sm_90\n"
TEXTS = {
    "entries": b".entry k( ",
    "variables": b".global .b8 .b8 ",
    "variables of one name": b".global .b8 a",
    "spaces": b".entry  \t ",
    "parameters": b".param .b8 a",
    "numbers": b".global .b99999999999999999999 a;",
}


@pytest.mark.parametrize(
    "words", in_check(TEXTS.values(), lambda words: b" a" not in words), ids=TEXTS
)
def test_repeated_text_is_read_in_bounded_time(words: bytes) -> None:
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


def test_reads_are_counted() -> None:
    budget = Budget(0)
    file = Counted(bytes(100), budget)
    with pytest.raises(BudgetExceeded):
        while True:
            file.seek(0)
            file.read(1)
