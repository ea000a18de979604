"""Finds, in a code object or a cubin, the variables that kernels can write."""

from __future__ import annotations

from mgpu_rt._images.elf import ALLOC, WRITE, Elf, Section
from mgpu_rt._images.model import Global

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
