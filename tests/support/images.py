"""Device images for the tests: real code objects, compiled by MLIR 22."""

from __future__ import annotations

import functools
import os
import struct
from pathlib import Path

from tests.support import lower
from tests.support.sources import SOURCES

#: Constants of ELF files: headers, and types of sections and segments.
HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SECTION = struct.Struct("<IIQQQQIIQQ")
SEGMENT = struct.Struct("<IIQQQQQQ")
PROGBITS, SYMTAB, STRTAB, NOTE = 1, 2, 3, 4


def default_chip() -> str:
    """Returns the chip of this process's HIP."""
    on_cuda = os.environ.get("MGPU_RT_HIP", "").endswith("/cuhip/libamdhip64.so")
    return "sm_90" if on_cuda else "gfx90a"


@functools.cache
def code_object(program: str, module: str | None = None, chip: str | None = None) -> bytes:
    """Returns the code object of <program>.mlir, or of the file's gpu.module that
    `module` names."""
    return lower.code_object(SOURCES[program], chip or default_chip(), module=module)


def exports_a_constant(chip: str | None = None) -> bytes:
    """Returns the code object of constant.mlir; the program can set its constant `factor` through
    HIP."""
    return lower.code_object(Path(__file__).with_name("constant.mlir"), chip or default_chip())


def bundle(*images: bytes) -> bytes:
    """Returns a clang offload bundle of several code objects for amdgcn, after an empty host
    entry."""
    names = [b"host-x86_64-unknown-linux--"]
    names += [b"hipv4-amdgcn-amd-amdhsa--gfx90a"] * len(images)
    contents = [b"", *images]
    header = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(names))
    at, table, body = 4096, b"", b""
    for name, content in zip(names, contents, strict=True):
        table += struct.pack("<QQQ", at + len(body), len(content), len(name)) + name
        body += content + bytes(-len(content) % 4096)
    return (header + table).ljust(at, b"\0") + body


def elf_of(
    machine: int,
    sections: list[tuple[int, int, int, int]],
    segments: int = 0,
    content: bytes = b"",
    names: int = 0,
) -> bytes:
    """Returns an ELF file with `content` and sections (type, flags, offset, size). All section
    names begin at the second byte of the section `names`. `segments` is a number of notes; each
    note covers all of the content."""
    begin = HEADER.size
    end = begin + len(content)
    rows = b"".join(
        SECTION.pack(1, kind, flags, 0, offset, size, 1, 0, 1, 24 if kind == SYMTAB else 0)
        for kind, flags, offset, size in sections
    )
    notes = SEGMENT.pack(NOTE, 4, begin, 0, 0, len(content), len(content), 4) * segments
    header = HEADER.pack(
        *(b"\x7fELF\x02\x01\x01" + bytes(9), 3, machine, 1, 0, end + len(rows), end, 0x500),
        *(HEADER.size, SEGMENT.size, segments, SECTION.size, len(sections), names),
    )
    return header + content + rows + notes
