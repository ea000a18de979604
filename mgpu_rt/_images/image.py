"""Reads the image at an offset: its kind, its length, and its content."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

from mgpu_rt._images import amd, elf, nvidia
from mgpu_rt._images.model import (
    BUNDLE,
    CODE_OBJECT,
    CUBIN,
    FATBIN,
    OTHER,
    PTX,
    ImageDescription,
)

BUNDLE_MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
FATBIN_MAGIC = b"\x50\xed\x55\xba"
PTX_BEGIN = re.compile(rb"\.version\s+\d+\.\d+\s+\.target\s+sm_")

_GPUS = (elf.AMDGPU, elf.CUDA)
_ENTRIES, _NAME_BYTES = 1024, 4096  # the most that are read
_FATBIN_PTX, _FATBIN_ELF, _FATBIN_ENTRY = 1, 2, 24


def at(data: bytes, offset: int = 0) -> ImageDescription | None:
    if elf.machine_of(data, offset) in _GPUS:
        return _elf(data, offset)
    for magic, read in _READERS.items():
        if data.startswith(magic, offset):
            return read(data, offset)
    return None


def ptx(text: bytes, offset: int = 0) -> ImageDescription:
    image = ImageDescription(
        PTX, text, offset=offset, size=len(text) + 1
    )  # including the 0 that ends it
    nvidia.describe_ptx(image)
    return image


# ---- code objects and cubins ----


def _elf(data: bytes, offset: int) -> ImageDescription:
    kind = CODE_OBJECT if elf.machine_of(data, offset) == elf.AMDGPU else CUBIN
    image = ImageDescription(kind, b"", offset=offset)
    try:
        image.size = elf.extent(data, offset) or 0
    except elf.Damaged as damage:
        image.damage = str(damage)
        return image
    end = offset + image.size if image.size else len(data)
    image.content = data[offset:end]
    describe = amd.describe if kind == CODE_OBJECT else nvidia.describe_cubin
    try:
        describe(image, elf.read(image.content))
    except elf.Damaged as damage:
        # A driver can load an image whose headers refer to existing data, even if this package
        # cannot read the data.
        image.unread = str(damage)
    return image


# ---- clang's offload bundles ----


def _bundle(data: bytes, offset: int) -> ImageDescription:
    image = ImageDescription(BUNDLE, b"", offset=offset)
    rows, end, whole = _table(data, offset)
    for start, size, name in rows:
        if offset + start + size > len(data):
            whole = False
            continue
        end = max(end, offset + start + size)
        image.entries.append(_entry(data, offset + start, size, start, name))
    image.content = data[offset:end]
    image.size = len(image.content)
    if not whole and not image.entries:
        image.damage = "its table points outside it: it is truncated or overwritten"
    return image


def _table(data: bytes, offset: int) -> tuple[list[tuple[int, int, bytes]], int, bool]:
    """Returns the rows of the non-empty entries, the offset of the table's end, and True if the
    whole table was read. A row is an entry's offset, size and name."""
    rows: list[tuple[int, int, bytes]] = []
    position = offset + len(BUNDLE_MAGIC) + 8
    (count,) = struct.unpack_from("<Q", data[position - 8 : position].ljust(8, b"\xff"))
    for number in range(count):
        if number == _ENTRIES or position + 24 > len(data):
            return rows, position, False
        start, size, length = struct.unpack_from("<QQQ", data, position)
        position += 24 + length
        if length > _NAME_BYTES or position > len(data):
            return rows, position, False
        if size:
            rows.append((start, size, data[position - length : position]))
    return rows, position, True


def _entry(data: bytes, start: int, size: int, offset: int, name: bytes) -> ImageDescription:
    """Reads one entry of a bundle. Parses only ELF entries, because in a damaged bundle an entry
    may be the bundle itself."""
    content = data[start : start + size]
    if elf.machine_of(content) in _GPUS:
        image = _elf(content, 0)
    else:
        image = ImageDescription(OTHER, content, size=size)
    image.entry, image.offset = name.decode(errors="replace"), offset
    return image


# ---- NVIDIA's fatbins ----


def _fatbin(data: bytes, offset: int) -> ImageDescription | None:
    if len(data) < offset + 16:
        return None
    _, header, size = struct.unpack_from("<HHQ", data, offset + 4)
    image = ImageDescription(FATBIN, data[offset : offset + header + size], offset=offset)
    if header < 16 or header + size > len(data) - offset:
        image.damage = "it is shorter than its header says: it is truncated"
        return image
    image.size = header + size
    _read_entries(image, header)
    return image


def _read_entries(image: ImageDescription, position: int) -> None:
    """Adds a fatbin's entries, up to the first entry that extends beyond the fatbin."""
    content = image.content
    while position + _FATBIN_ENTRY <= len(content):
        kind, _, header, size = struct.unpack_from("<HHIQ", content, position)
        start = position + header
        if header < _FATBIN_ENTRY or start + size > len(content):
            return
        entry = _fatbin_entry(kind, content[start : start + size])
        entry.offset = start
        if header >= 32 and not entry.target:
            entry.target = f"sm_{int.from_bytes(content[position + 28 : position + 32], 'little')}"
        image.entries.append(entry)
        position = start + size


def _fatbin_entry(kind: int, content: bytes) -> ImageDescription:
    if kind == _FATBIN_ELF and elf.machine_of(content) in _GPUS:
        return _elf(content, 0)
    if kind == _FATBIN_PTX and PTX_BEGIN.search(content):
        return ptx(content.rstrip(b"\0"))
    kinds = {_FATBIN_ELF: CUBIN, _FATBIN_PTX: PTX}
    return ImageDescription(
        kinds.get(kind, OTHER), content, size=len(content), unread="it is packed"
    )


_READERS: dict[bytes, Callable[[bytes, int], ImageDescription | None]] = {
    BUNDLE_MAGIC: _bundle,
    FATBIN_MAGIC: _fatbin,
}


# ---- images of unknown length in memory ----


def size_of(room: memoryview) -> int:
    """Returns an image's size according to the image's headers, or 0 if the headers do not contain
    the size.

    `room` is memory that begins with the image. The function reads only the image's headers and
    tables.
    """
    head = bytes(room[:64])
    try:
        if elf.machine_of(head) in _GPUS:
            return elf.extent(room) or 0
    except elf.Damaged:
        return 0
    if head.startswith(BUNDLE_MAGIC):
        rows, end, whole = _table(room, 0)
        return max([end, *(start + size for start, size, _ in rows)]) if whole else 0
    if head.startswith(FATBIN_MAGIC):
        return sum(struct.unpack_from("<HQ", head, 6))
    return 0
