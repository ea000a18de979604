"""Makes the table of a process's device memory."""

from __future__ import annotations

import os
from typing import Any

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


def _site(row: dict[str, Any]) -> str:
    """Returns a place's text: the symbol, the file, and the offset for addr2line."""
    file, offset = row["file"], f"{row['offset']:#x}"
    place = f"{shown(os.path.basename(file))}+{offset}" if file else offset
    if row["symbol"]:
        return f"{shown(row['symbol'])} ({place})"
    return place if file or row["offset"] else "elsewhere"


def memory_history(stats: dict[str, Any]) -> str:
    """Returns a table of the places that had allocated memory when each device's memory use peaked.
    `stats` comes from RuntimeLibrary.stats."""
    lines = []
    for device, values in stats["memory"].items():
        rows = sorted(values["peak"], key=lambda row: -row["bytes"])
        lines += ["", f"Device {shown(device)} at its peak: {size(sum(r['bytes'] for r in rows))}"]
        lines += [f"{size(r['bytes']):>12}  {r['blocks']:>6}  {_site(r)}" for r in rows]
    if not any(values["peak"] for values in stats["memory"].values()):
        return "No allocation was counted: set MGPU_RT_STATS before the first call\n"
    return "\n".join(["Device memory: bytes, blocks, where the program allocates", *lines]) + "\n"
