"""The table of a process's device memory, for people."""

from __future__ import annotations

from typing import Any

from mgpu_rt.text import shown, size

_COLUMNS = ("allocated", "peak_allocated", "reserved", "peak_reserved", "blocks", "cached_blocks")


def memory_summary(stats: dict[str, Any]) -> str:
    """A table of the device memory of a process, from its statistics (Library.stats)."""
    rows = [["device", *(column.replace("_", " ") for column in _COLUMNS)]]
    for device, values in stats["memory"].items():
        cells = (str(values[c]) if "blocks" in c else size(values[c]) for c in _COLUMNS)
        rows.append([shown(device), *cells])
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    ]
    cache = stats["cache"]["memory"]
    counted = "{hits} hits, {misses} misses, " if stats["abi"] else "{misses} misses, "
    last = (counted + "{evictions} given back").format(**cache)
    return "\n".join(["Device memory", *lines, last]) + "\n"
