"""Finds the images in a file. The file may be an image, or contain images as constants in its
data."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from mgpu_rt._images import elf, image, kernel_names
from mgpu_rt._images.model import BUNDLE, FATBIN, ImageDescription, with_article

_SIGNATURES = re.compile(
    rb"\x7fELF\x02\x01|"
    + b"|".join(re.escape(magic) for magic in (image.BUNDLE_MAGIC, image.FATBIN_MAGIC))
    + rb"|"
    + image.PTX_BEGIN.pattern
)
_ASCII = bytes((*b"\t\n\r", *range(32, 127)))

_TYPES = {1: "an object file", 2: "a program", 3: "a shared library or program"}


class NothingFound(Exception):
    """Raised if a file contains no image; one sentence gives the reason and the remedy."""


@dataclass
class Contents:
    kind: str  # "an object file for x86-64"
    images: list[ImageDescription]


def contents(data: bytes, name: str) -> Contents:
    """Returns the images in `data`; `name` describes the data in messages. Raises NothingFound."""
    found = _contents(data, name)
    if not found.images:
        raise NothingFound(
            f"{name} is {found.kind} and holds no image of device code: name a file that was "
            "lowered with gpu-module-to-binary, or an image itself"
        )
    only = found.images[0]
    if only.damage and not only.where:
        raise NothingFound(
            f"{name} is {with_article(only.kind)}, and {only.damage}; build or copy it again"
        )
    return found


def _contents(data: bytes, name: str) -> Contents:
    if not data:
        raise NothingFound(f"{name} is empty: build or copy it again")
    whole = image.at(data)
    if whole:
        return Contents(with_article(whole.kind), [whole])
    if data.startswith(elf.MAGIC):
        return _host(data, name)
    if text := _ptx_at(data, 0, len(data)):
        return Contents(with_article(text.kind), [text])
    if name.strip("'").endswith(".mlir"):
        raise NothingFound(f"{name} holds no device code: lower it by `mgpu-rt lower`")
    raise NothingFound(
        f"{name} holds no device code: name a code object, an offload bundle, a fatbin, PTX, or an "
        "ELF file that holds them"
    )


# ---- programs, libraries and object files ----


def _host(data: bytes, name: str) -> Contents:
    try:
        file = elf.read(data)
    except elf.Damaged as damage:
        raise NothingFound(f"{name}: {damage}; build or copy it again") from None
    everything = elf.Section("file", 0, elf.ALLOC, 0, 0, len(data), 0)
    sections = [s for s in file.sections or [everything] if _holds_data(s)]
    if any(s.offset + s.size > len(data) for s in sections):
        raise NothingFound(
            f"{name} is truncated or overwritten: its headers name more bytes than the "
            f"{len(data):,} that are there; build or copy it again"
        )
    kind = f"{_TYPES.get(file.type, 'an ELF file')} for {file.machine}"
    found = [i for section in sections for i in _in_section(data, file, section)]
    return Contents(kind, found)


def _holds_data(section: elf.Section) -> bool:
    """Returns True if the loader maps the section and the section contains no host code."""
    return (
        section.flags & (elf.ALLOC | elf.EXECUTE) == elf.ALLOC
        and section.type != elf.NOBITS
        and section.size > 0
    )


def _in_section(data: bytes, file: elf.Elf, section: elf.Section) -> Iterator[ImageDescription]:
    relocatable = file.type == 1
    symbols = {
        symbol.value - (0 if relocatable else section.address): symbol.name
        for symbol in file.symbols_by_section.get(section.index, ())
        if symbol.size
    }
    for found in _scan(data, section.offset, section.offset + section.size):
        position = found.offset - section.offset
        name = f" ({symbols[position]})" if position in symbols else ""
        found.module = kernel_names.module_of(symbols.get(position, ""))
        found.where = f"{section.name}+{position:#x}{name}"
        yield found


def _scan(data: bytes, begin: int, end: int) -> Iterator[ImageDescription]:
    """Yields the images between two offsets; skips bytes that only resemble an image."""
    while match := _SIGNATURES.search(data, begin, end):
        start = match.start()
        found = _ptx_at(data, start, end) if match[0][:1] == b"." else image.at(data, start)
        if found and _is_plausible(found):
            yield found
        begin = max(match.end(), found.offset + found.size if found else 0)


def _is_plausible(found: ImageDescription) -> bool:
    """Returns False if the search found only a signature, and no image. A program that reads images
    contains such signatures as data."""
    return found.kind not in (BUNDLE, FATBIN) or bool(found.entries)


def _ptx_at(data: bytes, at: int, end: int) -> ImageDescription | None:
    """Returns the PTX text whose .version is between two offsets. The PTX text begins with the
    characters before the .version directive, and ends at the terminating 0."""
    match = image.PTX_BEGIN.search(data, at, end)
    if not match:
        return None
    begin = match.start()
    while begin > 0 and data[begin - 1] in _ASCII:
        begin -= 1
    stop = data.find(b"\0", begin, end)
    return image.ptx(data[begin : stop if stop >= 0 else end], begin)
