"""Reads line tables, which map an address in an ELF file to a place in the source."""

from __future__ import annotations

import bisect
import functools
import io
import itertools
import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elftools.dwarf.dwarfinfo import DWARFInfo


@dataclass(frozen=True)
class Lines:
    """The rows of a file's line tables."""

    #: By address. The place is empty where the compiler names none, and None behind a sequence.
    rows: list[tuple[int, str | None]]

    def at(self, address: int) -> str:
        """Returns the place, as "file:line", of an address in the file; empty if unknown."""
        return next(self._places_down_from(address), None) or ""

    def before(self, address: int) -> str:
        """Returns the last known place of the sequence at or before an address; empty if there is
        none."""
        sequence = itertools.takewhile(
            lambda place: place is not None, self._places_down_from(address)
        )
        return next(filter(None, sequence), "")

    def _places_down_from(self, address: int) -> Iterator[str | None]:
        index = bisect.bisect_right(self.rows, address, key=lambda row: row[0])
        return (self.rows[row][1] for row in range(index - 1, -1, -1))


#: The maximum size in bytes of a line table that this module reads; pyelftools reads about 1 MB per
#: second.
_MOST = 2 << 20


@functools.lru_cache(maxsize=64)
def of_file(path: str) -> Lines:
    """Returns the line tables of a file; no rows if the file cannot be read."""
    try:
        return read(Path(path).read_bytes())
    except OSError:
        return Lines([])


def read(content: bytes) -> Lines:
    """Returns the line tables of an ELF file; no rows if the file is damaged or has no line
    tables."""
    from elftools.elf.elffile import ELFFile

    try:
        file = ELFFile(io.BytesIO(content))
        table = file.get_section_by_name(".debug_line")
        rows = _rows(file.get_dwarf_info()) if table and table["sh_size"] <= _MOST else []
        return Lines(sorted(rows, key=lambda row: row[0]))
    except Exception:  # pyelftools may raise any exception on a damaged file
        return Lines([])


def _rows(dwarf: DWARFInfo) -> list[tuple[int, str | None]]:
    rows: list[tuple[int, str | None]] = []
    for unit in dwarf.iter_CUs():
        folder = unit.get_top_DIE().attributes.get("DW_AT_comp_dir")
        program: Any = dwarf.line_program_for_CU(unit)
        if program is None:
            continue
        names = _names(program.header, folder.value.decode() if folder else "")
        for entry in program.get_entries():
            if (state := entry.state) is None:
                continue
            known = state.line and state.file in names
            place = f"{names[state.file]}:{state.line}" if known else ""
            rows.append((state.address, None if state.end_sequence else place))
    return rows


def _names(header: Any, folder: str) -> dict[int, str]:
    """Returns the path for each file number of a line table. File numbers begin at 0 since DWARF 5,
    and at 1 in earlier versions.

    MLIR writes relative folders into the compile unit and into the line table. Each of these
    folders is relative to the program's folder.
    """
    later = header["version"] >= 5
    folders = [each.decode() for each in header["include_directory"]]
    folders = [folder, *(folders[1:] if later else folders)]
    names = {}
    for number, each in enumerate(header["file_entry"], 0 if later else 1):
        parent = folders[each.dir_index] if each.dir_index < len(folders) else ""
        names[number] = posixpath.join(parent, each.name.decode())
    return names
