"""Writes the generated parts of docs/: the ABI, the options, the rule's table, the man page.

`python -m tests.release.docs` writes these pages; test_docs.py checks that they are up to date.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import click

from mgpu_rt import __version__, _abi
from mgpu_rt._cli import main, options
from tests.proofs.mutants import table
from tests.support.child import ROOT

ABI = """# The ABI

This page lists the functions of `libmlir_rocm_runtime.so`. The tables name the
versions of LLVM whose programs call a function, and the part of mgpu_rt that serves the function.
[csrc/abi.def](../csrc/abi.def) defines the functions, and `mgpu-rt config --abi` prints them. Only
some versions pass the parameters whose names begin with `late_`. The library uses such a parameter
only if the caller must have passed it.
A C program passes all parameters ([commands.md](commands.md#from-c)).

"""

OPTIONS = """# Options

The library reads the environment variables of the table once, at the first call of a function.
[options.def](../csrc/runtime/process/options.def) defines the variables, and `mgpu-rt config`
prints them with their current values. A set-uid program ignores every variable of the table.

| variable | default | |
|---|---|---|
"""

#: The text before the rows of the rule's table, and the text after them.
SHORTCUTS = "|---|---|---|\n", "<!-- end: from docs/proofs.md -->\n"


def abi_page() -> str:
    """docs/abi.md."""
    return ABI + _abi.markdown() + "\n" + _abi.left_out()


def options_page() -> str:
    """docs/options.md."""
    rows = (
        f"| `{option.variable}` | {option.default or '–'} | {option.meaning} |\n"
        for option in options.options()
    )
    return OPTIONS + "".join(rows)


def rule_page() -> str:
    """Returns docs/rule.md, whose first table has rows from docs/proofs.md."""
    begin, end = SHORTCUTS
    text = (ROOT / "docs" / "rule.md").read_text(encoding="utf-8")
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    return "".join([before, begin, *table.shortcuts(), end, after])


# ---- the man page ----


def man_page() -> str:
    """Returns docs/mgpu-rt.1, in troff."""
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


#: The generated pages by their paths.
PAGES = {
    "docs/abi.md": abi_page,
    "docs/options.md": options_page,
    "docs/rule.md": rule_page,
    "docs/mgpu-rt.1": man_page,
}
