"""Explains why a program was not lowered: LLVM's own message, and one line with the way out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from mgpu_rt._cli.errors import CommandError

if TYPE_CHECKING:
    from mgpu_rt._lowering.pipelines import Pipeline
    from mgpu_rt._lowering.toolchain import LoweringFailed, ToolchainMissing

#: The messages of ld and lld about an undefined symbol.
_UNDEFINED = re.compile(r"undefined (?:reference to [`']|symbol: )([^'\s]+)")
#: MLIR calls a function by this name if its declaration has llvm.emit_c_interface.
_WRAPPER = "_mlir_ciface_"
#: Functions of which LLVM's libraries define only the wrapper.
_ONLY_WRAPPERS = {f"printMemref{kind}" for kind in ("I8", "I16", "F16", "BF16")}


@contextmanager
def explained(program: str, pipeline: Pipeline, dry_run: str) -> Iterator[None]:
    """Turns the errors of a lowering into a CommandError, after the message of the tool. `dry_run`
    is what prints the commands of the lowering."""
    from mgpu_rt._lowering import object_files, pipelines, preparation, toolchain

    try:
        yield
    except toolchain.LoweringFailed as failed:
        if toolchain.is_unknown_chip(failed):
            raise CommandError(f"--{pipelines.unknown_chip(pipeline)}") from None
        click.echo(preparation.complaint(failed, program), err=True)
        raise _refusal(failed, program, dry_run) from None
    except toolchain.ToolchainMissing as error:
        absent = toolchain.missing(object_files.needs(pipeline))
        raise (_without(absent) if absent else CommandError(str(error))) from None
    except ValueError as error:
        raise CommandError(str(error)) from None


def _without(absent: list[ToolchainMissing]) -> CommandError:
    """Returns an error that names LLVM's missing tools and how to install the tools."""
    from mgpu_rt._lowering.toolchain import ARCHIVE
    from mgpu_rt._packages import how_to_install

    tools = ", ".join(each.tool for each in absent)
    packages = " ".join(dict.fromkeys(each.package for each in absent))
    return CommandError(
        f"missing: LLVM's {tools}; {how_to_install(packages)}, or put them in PATH; {ARCHIVE}; "
        "`mgpu-rt doctor` shows which releases of LLVM are complete"
    )


def _refusal(failed: LoweringFailed, program: str, dry_run: str) -> CommandError:
    from mgpu_rt._lowering import preparation

    told = f"'{program}' was not lowered: {failed.command[0]} failed "
    told += f"({dry_run} prints the commands)"
    if not failed.reads_source and "<stdin>:" in failed.complaint:
        told += f"; the lines above are of the lowered text, not of '{program}'"
    if undefined := set(_UNDEFINED.findall(failed.complaint)):
        if undefined == {"main"}:
            told += "; `mgpu-rt run --entry FUNCTION` runs a function without a main"
        if undefined & _ONLY_WRAPPERS:
            told += "; LLVM defines only a C wrapper: declare the function with attributes "
            told += "{llvm.emit_c_interface}"
        if any(name.startswith(_WRAPPER) for name in undefined):
            told += f"; {_WRAPPER}... is a C wrapper, which the runtime's functions do not have, "
            told += "and few of LLVM's: declare the function without llvm.emit_c_interface"
        if names := sorted(n for n in undefined if not n.startswith(f"{_WRAPPER}mgpu")):
            told += "; `mgpu-rt lower --emit executable --link FILE` links what defines "
            told += ", ".join(names)
        return CommandError(told)
    why = preparation.advice(failed.complaint)
    return CommandError(f"{told}; {why}" if why else told)
