"""Makes the table of a process's device memory."""

from __future__ import annotations

from typing import Any

from mgpu_rt._text import shown, size

_COLUMNS = ("allocated", "peak_allocated", "reserved", "peak_reserved", "blocks", "cached_blocks")


def memory_summary(stats: dict[str, Any]) -> str:
    rows = [["device", *(column.replace("_", " ") for column in _COLUMNS)]]
    is_counted = stats["abi"] is not None
    for device, values in stats["memory"].items():
        rows.append([shown(device), *(_cell(column, values[column]) for column in _COLUMNS)])
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


def _cell(column: str, value: int | None) -> str:
    if value is None:
        return "–"
    return str(value) if "blocks" in column else size(value)
