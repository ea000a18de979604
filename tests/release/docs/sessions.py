"""The sessions that pages show: commands after a "$", and the commands' output.

A fenced block whose first line names a language is a file. The last word in backquotes before the
block is the file's name, for example `mine.py`. A page may show "..." in place of lines. Times,
addresses and dates differ between runs, so they are not compared. The order of a table's rows
depends on times, so the order is not compared.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

LEFT_OUT = "..."

_PART = re.compile(
    r"`(?P<name>[\w.-]+)`[^`\n]*\n\n```\w+\n(?P<text>.*?)^```$"
    r"|(?P<session>(?:^    [^\n]*\n|^\n)+)",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class File:
    """A file that the page asks the reader to write."""

    name: str
    text: str


@dataclass
class Command:
    """A command and its output."""

    line: str
    shown: list[str] = field(default_factory=list)


def parts(text: str) -> Iterator[File | Command]:
    """Yields the files and commands of a page's text in their order."""
    for part in _PART.finditer(text):
        if part["name"]:
            yield File(part["name"], part["text"])
        else:
            yield from _commands(textwrap.dedent(part["session"]).splitlines())


def _commands(lines: list[str]) -> Iterator[Command]:
    command: Command | None = None
    for line in lines:
        if line.startswith("$ "):
            if command:
                yield command
            command = Command(line[2:])
        elif command:
            command.shown.append(line)
    if command:
        yield command


#: Patterns of text that differs between runs, and their replacements.
_VARIES = (
    (r"(?:\d+\.\d{3}|–) +(?:\d+\.\d{3}|–)(?: +[\d.–]+)?$", "TIMES"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "DATE"),
    (r"0x[0-9a-f]+", "ADDRESS"),
    (r"\d+\.\d+ (ms|µs)", "TIME"),
)


def fixed(lines: list[str]) -> Counter[str]:
    """Counts equal lines after removing text that differs between runs."""
    found: Counter[str] = Counter()
    for line in lines:
        for pattern, name in _VARIES:
            line = re.sub(pattern, name, line)
        if words := line.split():
            found[" ".join(words)] += 1
    return found


def missing(shown: list[str], printed: list[str]) -> list[str]:
    """Returns the lines that a page shows but the command did not print. If the page omits no
    lines, also returns the printed lines that the page lacks."""
    there = fixed(printed)
    wanted = fixed([line for line in shown if line.strip() != LEFT_OUT])
    lacking = wanted - there
    if not any(line.strip() == LEFT_OUT for line in shown):
        lacking += there - wanted
    return list(lacking)
