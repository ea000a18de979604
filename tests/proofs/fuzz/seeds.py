"""The seeds of the fuzzers: images that MLIR and clang produce, and settings."""

from __future__ import annotations

import struct
from collections.abc import Callable

from mgpu_rt._cli.options import options
from mgpu_rt._images import elf
from tests.support import lower
from tests.support.images import STRTAB, bundle, code_object, elf_of
from tests.support.sources import SOURCES

PTX = b"""//
.version 8.0
.target sm_90
.address_size 64
.visible .global .align 4 .u32 launches;
.extern .func vprintf
.visible .entry test_func(.param .u64 p)
{
\tld.global.b32 \t%r1, [%rd1];
\tret;
}
"""

_WORDS = b"\xab.value_kind\xabhidden_none"


def tables_first(image: bytes, gap: int = 0) -> bytes:
    """Moves the section headers before the last section. Some linkers write section headers in this
    place. `gap` bytes separate the headers from the section."""
    at, size, count = (
        struct.unpack_from(form, image, o)[0] for form, o in (("<Q", 40), ("<H", 58), ("<H", 60))
    )
    table = bytearray(image[at : at + size * count])
    last = max(range(count), key=lambda i: struct.unpack_from("<Q", table, i * size + 24)[0])
    offset, length = struct.unpack_from("<QQ", table, last * size + 24)
    struct.pack_into("<Q", table, last * size + 24, at + len(table) + gap)
    return image[:at] + bytes(table) + bytes(gap) + image[offset : offset + length]


def cubin(image: bytes) -> bytes:
    """Returns the ELF file with the machine number of NVIDIA's GPUs."""
    changed = bytearray(image)
    struct.pack_into("<H", changed, 18, 190)
    return bytes(changed)


def _fatbin(image: bytes) -> bytes:
    entries = b"".join(
        struct.pack("<HHIQII", kind, 0x101, 24, len(content), 0, 0) + content
        for kind, content in ((2, cubin(image)), (1, PTX))
    )
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entries)) + entries


def _compressed(version: int) -> bytes:
    sizes = struct.pack("<II" if version == 2 else "<QQ", 64, 200)
    return (b"CCOB" + struct.pack("<HH", version, 1) + sizes).ljust(64, b"\x55")


def code_objects() -> list[bytes]:
    """Returns small code objects with and without globals and arguments."""
    return [code_object(program, None, "gfx90a") for program in ("forum", "globals", "vecadd")]


def images() -> list[bytes]:
    """Returns one image of each kind."""
    forum, *others = code_objects()
    return [
        forum,
        *others,
        tables_first(forum),
        cubin(forum),
        bundle(forum),
        bundle(forum, others[0]),
        _fatbin(forum),
        _compressed(2),
        _compressed(3),
        PTX + b"\0",
        b"BC\xc0\xde" + bytes(60),
    ]


def files_of_images() -> list[bytes]:
    """Returns inputs that consist of a reader's number and a file (bundle.c)."""
    forum = code_objects()[0]
    kinds = (bundle(forum), _fatbin(forum), tables_first(forum))
    return [bytes([edge | n]) + kind for edge in (0, 128) for n, kind in enumerate(kinds)]


def shared_notes(description: bytes) -> bytes:
    """Returns a code object whose segments all contain the same notes; the last note is the
    metadata."""
    padded = description + bytes(-len(description) % 4)
    metadata = struct.pack("<III", 0, len(description), 32) + padded
    others = struct.pack("<III4s", 4, 0, 33, b"AMD") * 600
    return elf_of(elf.AMDGPU, [(STRTAB, 0, 0, 1)], 300, others + metadata)


def metadata() -> list[bytes]:
    """Returns images with unoptimised kernels, and other images."""
    unoptimised = lower.code_object(SOURCES["vecadd"], "gfx90a", opt_level=0)
    return [unoptimised, *code_objects(), shared_notes(_WORDS * 8)]


def settings() -> list[bytes]:
    """Returns one input for each variable and value, and one input with all lines. Each line begins
    with the variable's letter (options.c)."""
    letters = [chr(ord("A") + i) for i in range(len(options()) + 1)]
    values = (
        b"0",
        b"1",
        b"on",
        b"off",
        b"0.5",
        b"512M",
        b"lazy",
        b"local-rank",
        b"/tmp/x%p",
        b"-1",
    )
    lines = [letter.encode() + value for letter in letters for value in values]
    return [*lines, b"\n".join(lines)]


SEEDS: dict[str, Callable[[], list[bytes]]] = {
    "image": lambda: [*images(), shared_notes(b"\x80")],
    "bundle": files_of_images,
    "metadata": metadata,
    "ptx": lambda: [PTX],
    "options": settings,
}
