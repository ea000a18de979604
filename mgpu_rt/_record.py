"""Reads recordings: the bytes that MGPU_RT_STATS=PATH and MGPU_RT_TRACE=PATH leave in a file, and
that mgpu_rt_record returns.

A recording describes itself: its head lists columns (telemetry/recording/record_head.c). This
module finds each value by the names of its table and its column. So the module reads recordings of
other releases, of running processes, and of processes that were killed.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

MAGIC = b"mgpu_rt record\n\0"

_HEAD = struct.Struct("<16s32sIIQ")  # magic, version, layout, columns, size
_COLUMN = struct.Struct("<20s20sIIQQQ")  # table, name, kind, size; offset, stride, rows
_TEXTS = 16384  # the head's size
_LAYOUT = 1
_NUMBERS = {1: "B", 2: "H", 4: "I", 8: "Q"}


class Damaged(ValueError):
    """Raised with the reason why bytes are not a recording."""


class _Column(NamedTuple):
    name: str
    format: str
    offset: int  # in the recording, of the first row
    size: int


class _Table(NamedTuple):
    columns: list[_Column]
    stride: int
    rows: int


def is_recording(content: bytes) -> bool:
    return content[: len(MAGIC)] == MAGIC


class Recording:
    """A recording. Raises Damaged if the bytes are incomplete, or no recording."""

    def __init__(self, content: bytes) -> None:
        if not is_recording(content) or len(content) < _TEXTS:
            raise Damaged("the recording is damaged or truncated: record the program again")
        _, version, layout, columns, size = _HEAD.unpack_from(content)
        self.version = text(version)
        if layout != _LAYOUT:
            raise Damaged(f"mgpu_rt {self.version} has recorded it in another layout: use that one")
        if size > len(content) or _HEAD.size + columns * _COLUMN.size > _TEXTS:
            raise Damaged(
                f"the recording is truncated: {len(content):,} of {size:,} bytes are there; record "
                "the program again"
            )
        self._content = memoryview(content)[:size]
        self._tables = self._read_columns(columns)
        self.names = self._read_names(_HEAD.size + columns * _COLUMN.size)

    def _read_columns(self, count: int) -> dict[str, _Table]:
        tables: dict[str, _Table] = {}
        for number in range(count):
            at = _HEAD.size + number * _COLUMN.size
            table, name, kind, size, offset, stride, rows = _COLUMN.unpack_from(self._content, at)
            code = {ord("u"): _NUMBERS.get(size), ord("t"): f"{size}s"}
            form = code.get(kind, _NUMBERS.get(size, "").lower())
            if not form or not 0 < size <= stride:
                raise Damaged("the recording is damaged: record the program again")
            found = tables.setdefault(text(table), _Table([], stride, rows))
            found.columns.append(_Column(text(name), form, offset, size))
        return tables

    def _read_names(self, at: int) -> dict[str, list[str]]:
        """Returns the names of tables' rows, and of a column's values."""
        names: dict[str, list[str]] = {}
        for line in text(bytes(self._content[at:_TEXTS])).splitlines():
            key, _, name = line.partition(" ")
            names.setdefault(key, []).append(name)
        return names

    def count(self, table: str) -> int:
        """Returns the number of a table's rows that the recording contains."""
        found = self._tables.get(table)
        if found is None:
            return 0
        room = len(self._content) - min(column.offset for column in found.columns)
        return max(0, min(found.rows, room // found.stride))

    def tuples(
        self, table: str, columns: tuple[str, ...], begin: int = 0, end: int | None = None
    ) -> Iterator[tuple[Any, ...]]:
        """Yields the values of some columns, row by row; texts are bytes. Raises Damaged if the
        recording lacks a column."""
        end = self.count(table) if end is None else min(end, self.count(table))
        if end <= begin:
            return iter(())
        known = self._tables[table]
        if lacking := set(columns) - {column.name for column in known.columns}:
            raise Damaged(
                f"the recording has no {table}.{min(lacking)}: mgpu_rt {self.version} "
                "has recorded it, use that one"
            )
        base = min(column.offset for column in known.columns)
        wanted = sorted((c for c in known.columns if c.name in columns), key=lambda c: c.offset)
        form, at = "<", base
        for column in wanted:
            form += f"{column.offset - at}x{column.format}"
            at = column.offset + column.size
        rows = struct.Struct(f"{form}{base + known.stride - at}x").iter_unpack(
            self._content[base + begin * known.stride : base + end * known.stride]
        )
        order = [[column.name for column in wanted].index(name) for name in columns]
        if order == list(range(len(columns))):
            return rows
        return (tuple(row[place] for place in order) for row in rows)

    def values(self, table: str, column: str = "value") -> list[Any]:
        """Returns a column's values; texts are str."""
        return [text(v) if type(v) is bytes else v for (v,) in self.tuples(table, (column,))]

    def value(self, table: str, column: str = "value") -> Any:
        """Returns the value in a table of one row."""
        values = self.values(table, column)
        if not values:
            raise Damaged(f"the recording is damaged: it has no {table}")
        return values[0]

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Returns a table's rows, each by column; texts are str."""
        known = self._tables.get(table)
        if known is None:
            return []
        columns = tuple(column.name for column in known.columns)
        return [
            {n: text(v) if type(v) is bytes else v for n, v in zip(columns, row, strict=True)}
            for row in self.tuples(table, columns)
        ]

    def error(self, number: int) -> str:
        for line in self.names.get("error", []):
            known, _, name = line.partition(" ")
            if known == str(number):
                return name
        return f"error {number}"

    # ---- the trace ----

    @property
    def is_trace(self) -> bool:
        return self.count("next") > 0

    @property
    def replaced(self) -> int:
        """Returns the number of events that newer events have replaced."""
        return max(0, self.value("next") - self._tables["events"].rows)

    def events(self, columns: tuple[str, ...]) -> tuple[Iterator[tuple[Any, ...]], int]:
        """Returns the newest events in their order, each a tuple of these columns, and the number
        of all events so far. The iterator leaves out an event that was being written."""
        written, first = self.value("next"), self.replaced
        room = self._tables["events"].rows
        split = first % room
        parts = [(split, room), (0, split)] if first else [(0, written)]
        rows = itertools.chain.from_iterable(
            self.tuples("events", ("number", *columns), *part) for part in parts
        )
        numbered = zip(itertools.count(first + 1), rows)
        return (row[1:] for number, row in numbered if row[0] == number), written


def text(field: bytes) -> str:
    """Returns a text that ends with a 0; bytes that are not UTF-8 become "?"."""
    if field.startswith(b"\0"):
        return ""  # most rows of a table are free
    return field.partition(b"\0")[0].decode(errors="replace").replace("\ufffd", "?")
