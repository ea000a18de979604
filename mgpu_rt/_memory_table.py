"""Makes the table of a process's device memory."""

from __future__ import annotations

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
