"""Statistics as text for people."""

from __future__ import annotations

from typing import Any

_COLUMNS = ("allocated", "peak_allocated", "reserved", "peak_reserved", "blocks", "cached_blocks")


def memory_summary(stats: dict[str, Any]) -> str:
    """A table of the device memory of a process, from its statistics (Library.stats)."""
    from rich.console import Console
    from rich.filesize import decimal
    from rich.table import Table

    table = Table(title="Device memory")
    table.add_column("device", justify="right")
    for column in _COLUMNS:
        table.add_column(column.replace("_", " "), justify="right")
    for device, values in stats["memory"].items():
        sizes = (decimal(values[c]) if "blocks" not in c else str(values[c]) for c in _COLUMNS)
        table.add_row(device, *sizes)
    hits = stats["cache"]["memory"]
    table.caption = "{hits} hits, {misses} misses, {evictions} given back".format(**hits)
    console = Console(width=100, no_color=True)
    with console.capture() as capture:
        console.print(table)
    return capture.get()
