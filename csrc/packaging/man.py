"""Writes the man page of mgpu-rt from the command's own help.

    python csrc/packaging/man.py OUT

`make install` and setup.py run this file in a checkout; it needs click.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import click

from mgpu_rt import __version__
from mgpu_rt._cli import main, options


def man_page() -> str:
    """Returns the man page, in troff."""
    group = main.main
    lines = [
        f'.TH MGPU-RT 1 "" "mgpu_rt {__version__}"',
        ".SH NAME",
        r"mgpu\-rt \- run programs of MLIR's with a runtime that caches",
        ".SH SYNOPSIS",
        r".B mgpu\-rt",
        r".I command \fR[\fIoptions\fR] [\fIarguments\fR]",
        ".SH DESCRIPTION",
        *_paragraphs(group.help or ""),
        ".SH COMMANDS",
        *(line for name in sorted(group.commands) for line in _command(name, group.commands[name])),
        ".SH ENVIRONMENT",
        *(
            line
            for option in options.options()
            for line in (".TP", f".B {_escaped(option.variable)}", _escaped(_meaning(option)))
        ),
        ".SH EXIT STATUS",
        "That of the program that was run; 2 where the command line or a file is wrong.",
        ".SH SEE ALSO",
        f"The pages in {_escaped('docs/')} of the sources.",
    ]
    return "\n".join(lines) + "\n"


def _command(name: str, command: click.Command) -> Iterator[str]:
    context = click.Context(command, info_name=name)
    usage = " ".join(command.collect_usage_pieces(context))
    yield f".SS {_escaped(f'mgpu-rt {name} {usage}')}"
    yield from _paragraphs(command.help or "")
    for parameter in command.params:
        words, meaning = parameter.get_help_record(context) or ("", "")
        if meaning:
            yield ".TP"
            yield f".B {_escaped(words)}"
            yield _escaped(" ".join(meaning.split()))


def _paragraphs(text: str) -> Iterator[str]:
    for number, paragraph in enumerate(re.split(r"\n\s*\n", text.replace("\b\n", "").strip())):
        if number:
            yield ".PP"
        yield _escaped(" ".join(paragraph.split()))


def _meaning(option: options.Option) -> str:
    return f"{option.meaning}. Default: {option.default or 'empty'}."


def _escaped(text: str) -> str:
    text = text.replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{text}" if text.startswith((".", "'")) else text


if __name__ == "__main__":
    Path(sys.argv[1]).parent.mkdir(parents=True, exist_ok=True)
    Path(sys.argv[1]).write_text(man_page(), encoding="utf-8")
