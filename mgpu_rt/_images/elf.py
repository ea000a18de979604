"""Reads ELF files: returns a file's length, and the file's content as plain values.

On a damaged file pyelftools may raise any exception. This module therefore reads all values in one
function, which converts pyelftools' exceptions to Damaged.
"""

from __future__ import annotations

import functools
import io
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from mgpu_rt._images.model import Global

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile

MAGIC = b"\x7fELF"
CUDA, AMDGPU = 190, 224
WRITE, ALLOC, EXECUTE = 1, 2, 4
NOBITS = 8
GLOBAL = 1  # a symbol's binding
OBJECT = 1  # a symbol's type: a variable

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SYMBOL = struct.Struct("<IBBHQQ")


class Damaged(Exception):
    """Raised with the reason why a file cannot be read."""


@dataclass(frozen=True)
class Section:
    name: str
    type: int
    flags: int
    address: int
    offset: int
    size: int
    index: int
    link: int = 0


@dataclass(frozen=True)
class Symbol:
    name: str
    value: int
    size: int
    section: int


@dataclass(frozen=True)
class Elf:
    osabi: int
    abi_version: int
    type: int
    flags: int
    machine: str
    sections: list[Section]
    notes: list[tuple[int, bytes]]
    symbols: list[Symbol]
    undefined: list[str]  # global names that another file must define
    exports: list[str]  # variables that a driver finds by name, and descriptors of kernels

    @functools.cached_property
    def symbols_by_section(self) -> dict[int, list[Symbol]]:
        found: dict[int, list[Symbol]] = {}
        for symbol in self.symbols:
            found.setdefault(symbol.section, []).append(symbol)
        return found


@functools.lru_cache(maxsize=64)
def _tables_of(path: str) -> tuple[list[Symbol], list[Section]]:
    """Returns the defined symbols and the sections of a file; none if it cannot be read."""
    try:
        found = read(Path(path).read_bytes())
    except (OSError, Damaged, ImportError):
        return [], []
    return found.symbols, found.sections


def symbol_at(path: str, address: int) -> Symbol | None:
    found = (each for each in _tables_of(path)[0] if 0 <= address - each.value < each.size)
    return next(found, None)


@functools.lru_cache(maxsize=64)
def copies_of(path: str, symbol: Symbol) -> list[Symbol]:
    """Returns the symbols of a linked file whose bytes equal those of `symbol`, and `symbol`, by
    address."""
    symbols, sections = _tables_of(path)
    alike = sorted(
        {each for each in symbols if each.size == symbol.size}, key=lambda s: (s.value, s.name)
    )
    if len(alike) == 1:
        return alike
    try:
        with open(path, "rb") as file:
            content = _content_of(file, sections, symbol)
            equal = content and [s for s in alike if _content_of(file, sections, s) == content]
    except OSError:
        equal = None
    return equal or [symbol]


def _content_of(file: BinaryIO, sections: Sequence[Section], symbol: Symbol) -> bytes:
    """Returns the bytes that a symbol of a linked file names; b"" if the file lacks them."""
    if symbol.section >= len(sections) or sections[symbol.section].type == NOBITS:
        return b""
    section = sections[symbol.section]
    file.seek(max(0, section.offset + symbol.value - section.address))
    return file.read(symbol.size)


def machine_of(data: bytes, at: int = 0) -> int | None:
    """Returns the machine of a 64-bit little-endian ELF; None for any other header."""
    if data[at : at + 6] != MAGIC + b"\2\1" or at + _HEADER.size > len(data):
        return None
    return _HEADER.unpack_from(data, at)[2]


def extent(data: bytes, at: int = 0) -> int | None:
    """Returns the length of a GPU's ELF file according to the file's headers, or None for an
    unknown form of headers.

    Raises Damaged if the ELF file extends beyond the end of `data`, or if no driver accepts the
    file.
    """
    header = _HEADER.unpack_from(data, at)
    machine, segments, sections = header[2], *header[5:7]
    esize, ecount, ssize, scount = header[9:13]
    if machine == AMDGPU and not scount:
        raise Damaged("it has no sections, which AMD's HIP needs")
    if ssize != _SECTION.size or not scount or (ecount and esize != _SEGMENT.size):
        return None
    room = len(data) - at
    end = max(segments + ecount * esize, sections + scount * ssize)
    _within(end, room)
    for i in range(scount):
        _, kind, _, _, offset, size, *_ = _SECTION.unpack_from(data, at + sections + i * ssize)
        end = max(end, 0 if kind == NOBITS else offset + size)
    for i in range(ecount):
        _, _, offset, _, _, size, *_ = _SEGMENT.unpack_from(data, at + segments + i * esize)
        end = max(end, offset + size)
    _within(end, room)
    return end


def _within(end: int, room: int) -> None:
    if end > room:
        raise Damaged(f"it is truncated or overwritten: its headers name {end:,} bytes of {room:,}")


def read(data: bytes) -> Elf:
    """Reads an ELF file. Raises Damaged."""
    from elftools.elf.elffile import ELFFile  # 20 ms, which an extent need not cost

    try:
        return _read(ELFFile(io.BytesIO(data)), data)
    except Exception as error:  # see above
        reason = " ".join(str(error).split()) or type(error).__name__
        raise Damaged(f"its ELF headers cannot be read ({reason})") from None


def _read(file: ELFFile, data: bytes) -> Elf:
    machine = file.get_machine_arch().strip("<>")
    sections = _sections(file)
    symbols, undefined = [], []
    if file.elfclass == 64 and file.little_endian:
        named = {section.name: section for section in reversed(sections)}
        for name, _, binding, section, value, size in _symbols(
            data, sections, named.get(".symtab") or named.get(".dynsym")
        ):
            if section:
                symbols.append(Symbol(name, value, size, section))
            elif binding == GLOBAL:
                undefined.append(name)
    dynamic = [each for each in sections if each.name == ".dynsym"]
    exports = [
        name
        for table in dynamic
        for name, kind, _, section, *_ in _symbols(data, sections, table)
        if section and kind == OBJECT
    ]
    return Elf(
        osabi=data[7],
        abi_version=file.header.e_ident.EI_ABIVERSION,
        type=int.from_bytes(data[16:18], "little" if file.little_endian else "big"),
        flags=file.header.e_flags,
        machine="x86-64" if machine == "x64" else machine,
        sections=sections,
        notes=_notes(file),
        symbols=symbols,
        undefined=undefined,
        exports=exports,
    )


def _sections(file: ELFFile) -> list[Section]:
    return [
        Section(
            name=section.name,
            link=section["sh_link"],
            type=NOBITS if section["sh_type"] == "SHT_NOBITS" else 0,
            flags=section["sh_flags"],
            address=section["sh_addr"],
            offset=section["sh_offset"],
            size=section["sh_size"],
            index=index,
        )
        for index, section in enumerate(file.iter_sections())
    ]


def _notes(file: ELFFile) -> list[tuple[int, bytes]]:
    """Returns the type and the content of each note whose type is a number."""
    return [
        (note["n_type"], note["n_descdata"])
        for segment in file.iter_segments("PT_NOTE")
        for note in segment.iter_notes()
        if isinstance(note["n_type"], int)
    ]


def _symbols(
    data: bytes, sections: list[Section], table: Section | None
) -> Iterator[tuple[str, int, int, int, int, int]]:
    """Yields the name, type, binding, section, value and size of each named symbol of a table.
    Reads the symbols with `struct`: a program may have a million symbols, and pyelftools takes 30
    µs for each symbol."""
    if table is None:
        return
    content, names = _bytes_of(data, table), _bytes_of(data, sections[table.link])
    whole = len(content) // _SYMBOL.size * _SYMBOL.size
    for name, info, _, section, value, size in _SYMBOL.iter_unpack(content[:whole]):
        if name:
            yield _text(names, name), info & 0xF, info >> 4, section, value, size


def _bytes_of(data: bytes, section: Section) -> bytes:
    return data[section.offset : section.offset + section.size]


def _text(names: bytes, at: int) -> str:
    end = names.find(b"\0", at)
    return names[at : end if end >= 0 else len(names)].decode(errors="replace")


# ---- variables that kernels can write ----

#: Sections that the loader may write, but that a running kernel cannot write.
_LOADERS = (".dynamic", ".relro_padding", ".got", ".got.plt")
_WORKGROUP_MEMORY = ".nv.shared"


def globals_of(elf: Elf) -> list[Global]:
    """Returns the variables of writable sections; a section without symbols counts as one
    variable."""
    found = []
    for section in filter(_is_writable, elf.sections):
        symbols = [s for s in elf.symbols_by_section.get(section.index, ()) if s.size]
        named = [Global(symbol.name, symbol.size) for symbol in symbols]
        found += named or [Global(section.name, section.size)]
    return found


def _is_writable(section: Section) -> bool:
    return (
        section.flags & (WRITE | ALLOC) == WRITE | ALLOC
        and section.size > 0
        and section.name not in _LOADERS
        and not section.name.startswith(_WORKGROUP_MEMORY)
    )
