"""Images for the situations: valid images, and invalid images of each kind."""

from __future__ import annotations

import functools
import struct
from pathlib import Path

from tests.proofs.programs import images as kernels
from tests.support.folders import folder
from tests.support.images import bundle, code_object

CHIP = "gfx90a"
OTHER_CHIP = "gfx1100"
_MACHINE, _SEGMENTS_AT, _SECTIONS_AT, _SECTIONS = 18, 32, 40, 60  # in an ELF's header
_FAR = struct.pack("<Q", 1 << 40)


def _changed(image: bytes, at: int, bytes_there: bytes) -> bytes:
    return image[:at] + bytes_there + image[at + len(bytes_there) :]


def _bundle_head(entries: int) -> bytes:
    return b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", entries)


def _compressed(size: int, content: bytes) -> bytes:
    """Returns `content` behind a compressed bundle's header of version 2. The header contains the
    method zstd, the whole size, the uncompressed size and a hash."""
    return b"CCOB" + struct.pack("<HHIIQ", 2, 1, size, 4096, 0) + content


@functools.cache
def images() -> dict[str, bytes]:
    """Returns all images, by name."""
    lowered = kernels.write(CHIP)
    good = (lowered / "plain0").read_bytes()
    both = bundle(good)
    with open("/proc/self/exe", "rb") as file:
        program = file.read(1 << 16)
    return {
        "good": good,
        "globals": (lowered / "cell0").read_bytes(),
        "empty": bytes(4096),
        "junk": b"\xa5" * 4096,
        "text": b".text\nnot an image\n\0".ljust(64, b"\0"),
        "bitcode": b"BC\xc0\xde".ljust(4096, b"\0"),
        "few_bytes": b"\xa5" * 4,
        "some_bytes": b"\xa5" * 12,
        "elf_magic": good[:4],
        "elf_half_header": good[:32],
        "elf_header": good[:64],
        "elf_half": good[: len(good) // 2],
        "elf_without_its_last_byte": good[:-1],
        "elf_overwritten": good[:64] + b"\xa5" * (len(good) - 64),
        "elf_sections_far_away": _changed(good, _SECTIONS_AT, _FAR),
        "elf_segments_far_away": _changed(good, _SEGMENTS_AT, _FAR),
        "elf_without_sections": _changed(good, _SECTIONS, bytes(4)),
        "elf_for_another_gpu": code_object("forum", None, OTHER_CHIP),
        "elf_for_another_machine": program,
        "elf_for_x86": _changed(good, _MACHINE, b"\x3e\0"),
        "elf_of_32_bits": _changed(good, 4, b"\1"),
        "bundle_magic": both[:24],
        "bundle_of_nothing": _bundle_head(0),
        "bundle_many_entries": _bundle_head(1 << 40),
        "bundle_half_table": both[:60],
        "bundle_entry_far_away": both[:4096].replace(
            struct.pack("<QQ", 4096, len(good)), struct.pack("<QQ", 1 << 40, len(good))
        ),
        "bundle_half": both[: 4096 + len(good) // 2],
        "bundle_for_another_gpu": bundle(code_object("forum", None, OTHER_CHIP)),
        "compressed_magic": b"CCOB",
        "compressed_half": _compressed(1 << 16, bytes(64)),
        "compressed_junk": _compressed(24 + 64, bytes(64)),
        "fatbin": struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 64) + bytes(64),
        "fatbin_half": struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 1 << 16) + bytes(64),
    }


@functools.cache
def write() -> Path:
    """Writes the images, and returns their folder."""
    made = folder("last_error")
    for name, content in images().items():
        (made / name).write_bytes(content)
    return made
