"""Formats tables, paragraphs and untrusted names for a terminal."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from collections.abc import Sequence
from contextlib import suppress

NARROWEST = 20  # columns for the last cell, on any terminal

NONE = "–"  # stands for a value that was not counted

NAME = 160  # letters of a name; compilers make longer ones

#: Matches characters that control a terminal, are invisible, change the text's direction, or cannot
#: be encoded in UTF-8.
_UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff"
    "\U000e0000-\U000e0fff]"
)


def note_on(device: str) -> str:
    """Returns a note on the figures of an emulated device; returns "" for a GPU."""
    return "EMULATED: no GPU was timed" if "(emulated)" in device else ""


def printable(text: str) -> str:
    """Returns the text with unprintable characters as escapes."""
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def say(text: str) -> None:
    """Writes a line to stderr at once, with control characters as escapes. Drops a line that cannot
    be written, as the library's C code does."""
    with suppress(OSError, ValueError):  # full, closed
        if sys.stderr is not None:
            sys.stderr.write(f"{printable(text)}\n")
            sys.stderr.flush()


def shortened(text: str, longest: int = NAME) -> str:
    """Returns a text with an ellipsis in place of its middle, if the text is longer than
    `longest`."""
    if len(text) <= longest:
        return text
    return f"{text[: longest // 2]}…{text[-longest // 2 :]}"


def shown(text: str) -> str:
    """Returns an untrusted name, escaped and shortened for a terminal."""
    return shortened(printable(text))


def columns(rows: Sequence[Sequence[str]], width: int | None = None) -> list[str]:
    """Returns a block of lines for each row; the cells of all rows are aligned in columns.

    The last cell of a row is wrapped to fit `width`, by default the terminal's width; the cell's
    own line ends remain. Each cell before the last is padded to the width of its column.
    """
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)][:-1]
    indent = sum(widths) + 2 * len(widths)
    room = max((width or shutil.get_terminal_size().columns) - indent, NARROWEST)
    blocks = []
    for *cells, last in rows:
        head = "".join(f"{cell:{size}}  " for cell, size in zip(cells, widths, strict=True))
        lines = [line for part in last.splitlines() for line in _fold(part, room)] or [""]
        blocks.append(head + ("\n" + " " * indent).join(lines))
    return blocks


def indented(text: str) -> str:
    """Returns a paragraph whose lines fit the terminal, indented by four columns."""
    room = shutil.get_terminal_size().columns - 4
    return "\n".join(f"    {line}" for line in _fold(text, room))


def _fold(text: str, room: int) -> list[str]:
    # Lines do not break at hyphens and slashes, because users copy options and paths.
    return textwrap.wrap(text, room, break_on_hyphens=False, break_long_words=False) or [""]


def duration(ns: float | None) -> str:
    """Formats a time with three significant digits: 2.51 s, 446 ms, 9.8 µs."""
    if ns is None:
        return NONE
    if ns < 999.5:
        return f"{ns:.0f} ns"
    for unit in ("µs", "ms", "s"):
        ns /= 1000
        if ns < 999.5 or unit == "s":
            break
    return f"{ns:.{2 if ns < 9.995 else 1 if ns < 99.95 else 0}f} {unit}"


def size(count: float) -> str:
    """Formats a number of bytes with a unit: 4.2 GB."""
    if count < 1000:
        return f"{count:.0f} bytes"
    for unit in ("kB", "MB", "GB"):
        count /= 1000
        if count < 1000:
            return f"{count:.1f} {unit}"
    return f"{count / 1000:.1f} TB"
