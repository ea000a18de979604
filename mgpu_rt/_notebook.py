"""Shows statistics and tables in notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from mgpu_rt._text import shown, size

_STYLE = "text-align: right; padding: 0.1em 0.8em; font-variant-numeric: tabular-nums"


class Table(str):
    """A table as text, which a notebook shows in a monospaced font."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self)}</pre>"


class Statistics(dict[str, Any]):
    """Statistics as mgpu_rt.h describes them, which a notebook shows as tables."""

    def _repr_html_(self) -> str:
        caches = [
            (name, counts["hits"] if self["abi"] else "", counts["misses"], counts["evictions"])
            for name, counts in self["cache"].items()
        ]
        memory = [
            (f"device {shown(device)}", *(size(held[name]) for name in _MEMORY))
            for device, held in self["memory"].items()
        ]
        parts = [
            _table("caches", ("", "hits", "misses", "evicted"), caches),
            _table("device memory", ("", *_MEMORY.values()), memory),
            _table("calls of the program", _CALLS, _calls(self["abi"])),
            _table("calls of the driver", _CALLS, _calls(self["hip"])),
        ]
        if not self["abi"]:
            parts.append("<p>Calls and hits are counted with MGPU_RT_STATS.</p>")
        return "".join(parts)


_MEMORY = {
    "allocated": "allocated",
    "peak_allocated": "peak",
    "reserved": "reserved",
    "peak_reserved": "peak",
}
_CALLS = ("", "calls", "ms")


def _calls(counted: dict[str, dict[str, int]]) -> list[tuple[str, int, str]]:
    """Returns a row for each function that was called; the longest time comes first."""
    rows = sorted(counted.items(), key=lambda each: -each[1]["ns"])
    return [(shown(name), c["calls"], f"{c['ns'] / 1e6:.3f}") for name, c in rows if c["calls"]]


def _table(title: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Returns a table, or nothing if there are no rows."""
    lines = [_row("th", head), *(_row("td", row) for row in rows)]
    if len(lines) == 1:
        return ""
    caption = f'<caption style="text-align: left; padding: 0.3em 0.8em"><b>{title}</b></caption>'
    return f"<table>{caption}{''.join(lines)}</table>"


def _row(kind: str, cells: Sequence[object]) -> str:
    first, *others = (escape(str(cell)) for cell in cells)
    left = _STYLE.replace("right", "left", 1)
    parts = [f'<{kind} style="{left}">{first}</{kind}>']
    parts += [f'<{kind} style="{_STYLE}">{cell}</{kind}>' for cell in others]
    return f"<tr>{''.join(parts)}</tr>"
