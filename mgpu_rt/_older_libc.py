"""Adapts libraries that were linked against a newer C library than this machine's.

A library states a version for each function that the library uses from the C library. The loader
refuses the library if the C library lacks that version. Few functions have a new version in a newer
C library. Since glibc 2.38, programs for C23 call __isoc23_strtol, which accepts binary constants.
glibc 2.38 also has a new version of fmod, without SVID's error handling. `fit` replaces required
versions that are too new by versions that every x86-64 glibc has.
"""

from __future__ import annotations

import ctypes
import functools
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

#: The files of glibc's package, which are not installed, because a process has one C library.
ITS_FILES = frozenset(
    f"lib{name}"
    for name in (
        *("BrokenLocale.so.1", "anl.so.1", "c.so.6", "c_malloc_debug.so.0", "dl.so.2", "m.so.6"),
        *("memusage.so", "mvec.so.1", "nsl.so.1", "nss_compat.so.2", "nss_dns.so.2"),
        *("nss_files.so.2", "nss_hesiod.so.2", "pcprofile.so", "pthread.so.0", "resolv.so.2"),
        *("rt.so.1", "thread_db.so.1", "util.so.1"),
    )
)
_OLDEST = "GLIBC_2.2.5"  # the first version for x86-64
_C23 = "__isoc23_"
_WORD, _SHORT = struct.Struct("<I"), struct.Struct("<H")
_SYMBOL, _HASH, _NAME = 24, 0, 8  # an Elf64_Sym's size; offsets in an Elf64_Vernaux


class LibraryTooOld(RuntimeError):
    """Raised if this machine's C library lacks a function; the message names the function."""


def fit(library: Path) -> None:
    """Makes a library run with this machine's C library; does nothing if the library already runs.

    Raises LibraryTooOld.
    """
    from elftools.elf.elffile import ELFFile

    with library.open("r+b") as file:
        if file.read(4) == b"\x7fELF":
            _fit(library.name, ELFFile(file), file)


def _fit(name: str, elf: Any, file: BinaryIO) -> None:
    needs, versions, symbols, strings = (
        elf.get_section_by_name(section)
        for section in (".gnu.version_r", ".gnu.version", ".dynsym", ".dynstr")
    )
    late = dict(_late(needs)) if needs else {}
    if not late:
        return
    names = strings.data()
    oldest = names.find(f"\0{_OLDEST}\0".encode()) + 1
    if not oldest:
        raise LibraryTooOld(f"{name} asks for {sorted(late.values())[0][1]} and no older function")
    for number, (version,) in enumerate(_SHORT.iter_unpack(versions.data())):
        if version not in late:
            continue
        symbol = symbols.get_symbol(number)
        plain = symbol.name.removeprefix(_C23)
        if not _has(late[version][0], plain):
            raise LibraryTooOld(f"{name} needs {plain} of {late[version][1]}")
        file.seek(symbols["sh_offset"] + number * _SYMBOL)
        file.write(_WORD.pack(symbol.entry["st_name"] + len(symbol.name) - len(plain)))
    for _, _, at in late.values():
        file.seek(at + _HASH)
        file.write(_WORD.pack(_hash(_OLDEST)))
        file.seek(at + _NAME)
        file.write(_WORD.pack(oldest))


def _late(needs: Any) -> Iterator[tuple[int, tuple[str, str, int]]]:
    """Yields the number, library, name and offset of each version that this machine's C library
    lacks. The offset is the position of the version's entry in the file."""
    need_at = needs["sh_offset"]
    for need, auxiliaries in needs.iter_versions():
        at = need_at + need["vn_aux"]
        for auxiliary in auxiliaries:
            if auxiliary.name.startswith("GLIBC_") and _number(auxiliary.name) > _own():
                yield auxiliary["vna_other"], (need.name, auxiliary.name, at)
            at += auxiliary["vna_next"]
        need_at += need["vn_next"]


def _number(version: str) -> tuple[int, ...]:
    """Returns (2, 38) for GLIBC_2.38. A version without numbers, such as GLIBC_ABI_DT_RELR, sorts
    after all numbered versions."""
    parts = version.removeprefix("GLIBC_").split(".")
    return tuple(map(int, parts)) if all(part.isdigit() for part in parts) else (1 << 16,)


@functools.cache
def _own() -> tuple[int, ...]:
    """Returns the version of this machine's C library."""
    return _number((os.confstr("CS_GNU_LIBC_VERSION") or "glibc 0").partition(" ")[2])


def _has(library: str, function: str) -> bool:
    """Returns True if `library`, a part of the C library, provides the oldest version of a
    function."""
    find = ctypes.CDLL(None).dlvsym
    find.restype, find.argtypes = (
        ctypes.c_void_p,
        (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p),
    )
    return bool(find(ctypes.CDLL(library)._handle, function.encode(), _OLDEST.encode()))


def _hash(name: str) -> int:
    """Returns ELF's hash of a version's name."""
    value = 0
    for byte in name.encode():
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ high >> 24) & ~high
    return value
