"""Parses a page of `mgpu-rt compare --report` for tests."""

from __future__ import annotations

from html.parser import HTMLParser


class Page(HTMLParser):
    """A page's tags, text and tables."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.tables: dict[str, dict[str, list[str]]] = {}  # rows by first cell, by caption
        self._table: dict[str, list[str]] = {}
        self._row: list[str] = []
        self._parts: list[str] = []
        self._cell: int | None = None  # where the text of the current cell begins
        self.feed(html)
        self.text = " ".join("".join(self._parts).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag == "table":
            self._table = {}
        elif tag == "tr":
            self._row = []
        if tag in ("caption", "th", "td"):
            self._cell = len(self._parts)

    def handle_data(self, data: str) -> None:
        self._parts.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("caption", "th", "td"):
            cell = "".join(self._parts[self._cell :])
            if tag == "caption":
                self.tables[cell] = self._table
            else:
                self._row.append(cell)
        elif tag == "tr":
            self._table[self._row[0]] = self._row[1:]
        if tag in ("p", "h1", "h2", "h3", "li", "dt", "dd", "td", "th", "tr", "caption"):
            self._parts.append(" ")
