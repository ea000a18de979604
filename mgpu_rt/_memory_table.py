"""Makes the tables of a process's device memory."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from typing import Any

from mgpu_rt._record import Recording
from mgpu_rt._text import shown, size

_COLUMNS = ("allocated", "peak_allocated", "reserved", "peak_reserved", "blocks", "cached_blocks")


def memory_summary(stats: dict[str, Any]) -> str:
    """Returns a table of a process's device memory, from its statistics (RuntimeLibrary.stats)."""
    rows = [["device", *(column.replace("_", " ") for column in _COLUMNS)]]
    is_counted = bool(stats["abi"])
    for device, values in stats["memory"].items():
        cells = [str(values[c]) if "blocks" in c else size(values[c]) for c in _COLUMNS]
        if not is_counted:
            cells[_COLUMNS.index("peak_allocated")] = "–"
        rows.append([shown(device), *cells])
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    ]
    cache = stats["cache"]["memory"]
    counted = "{hits} hits, {misses} misses, " if is_counted else "{misses} misses, "
    last = (counted + "{evictions} evicted").format(**cache)
    if not is_counted:
        last += "; the peak of allocated memory and the hits are counted with MGPU_RT_STATS"
    return "\n".join(["Device memory", *lines, last]) + "\n"


# ---- places that hold memory ----


def memory_history(recording: Recording) -> str:
    """Returns a table of the places that had allocated memory when the program's device memory
    peaked. `recording` contains a trace, whose events are the allocations and the frees."""
    if not recording.is_trace:
        return (
            "No allocation was recorded: set MGPU_RT_TRACE before the first call (/dev/null "
            "records without a file)\n"
        )
    peak = _peak(recording)
    rows = sorted(peak.items(), key=lambda item: -item[1][0])
    known = recording.rows("places")
    lines = [
        f"Device memory at its peak: {size(sum(held for held, _ in peak.values()))}",
        *(f"{size(held):>12}  {blocks:>6}  {_site(known, row)}" for row, (held, blocks) in rows),
    ]
    return "\n".join(["Device memory: bytes, blocks, where the program allocates", *lines]) + "\n"


def _peak(recording: Recording) -> dict[int, tuple[int, int]]:
    """Returns the bytes and the blocks of each place, at the peak."""
    changes = list(_changes(recording))
    held = [0, *itertools.accumulate(change for _, change in changes)]
    sums: dict[int, tuple[int, int]] = {}
    for place, change in changes[: held.index(max(held))]:
        total, blocks = sums.get(place, (0, 0))
        sums[place] = (total + change, blocks + (1 if change > 0 else -1))
    return {place: (total, blocks) for place, (total, blocks) in sums.items() if blocks}


def _changes(recording: Recording) -> Iterator[tuple[int, int]]:
    """Yields the place and the size of each allocation; the size is negative for a free."""
    names = recording.names["abi"]
    allocates, frees = names.index("mgpuMemAlloc"), names.index("mgpuMemFree")
    program = recording.names["kind"].index("program")
    blocks: dict[int, tuple[int, int]] = {}
    columns = ("kind", "function", "address", "bytes", "place", "error")
    for kind, function, address, count, place, error in recording.events(columns)[0]:
        if kind != program or not address or error:
            continue
        if function == allocates:
            blocks[address] = (place, count)
            yield place, count
        elif function == frees and address in blocks:
            place, count = blocks.pop(address)
            yield place, -count


def _site(places: list[dict[str, Any]], row: int) -> str:
    """Returns a place's text: the symbol, the file, and the offset for addr2line."""
    if not 0 < row <= len(places):
        return "elsewhere"
    file, offset = places[row - 1]["file"], places[row - 1]["offset"]
    if not file:
        return f"{offset:#x}"
    place = f"{shown(os.path.basename(file))}+{offset:#x}"
    symbol = _symbol(file, offset)
    return f"{shown(symbol)} ({place})" if symbol else place


def _symbol(file: str, offset: int) -> str:
    """Returns the function that contains an address of a file, with the distance; "" if the file's
    symbols do not name one."""
    from mgpu_rt._images import elf

    found = elf.symbol_at(file, offset)
    return f"{found.name}+{offset - found.value:#x}" if found else ""
