"""Reads and writes the files of `mgpu-rt hoist`."""

from __future__ import annotations

from mgpu_rt._cli import files
from mgpu_rt._cli.errors import CommandError
from mgpu_rt._hoist import rewrite, tools
from mgpu_rt._images.sharing import NotBuilt
from mgpu_rt._lowering.toolchain import ToolchainMissing

NAME_ONE = "name a program in the LLVM dialect, or - for stdin"


def write(program: str, out: str, llvm: int | None) -> list[str]:
    """Hoists the program of one file into another file; returns the lines to print. On an error,
    writes no file and raises CommandError."""
    given = files.read(program, NAME_ONE)
    try:
        hoisted = rewrite.hoist(given, tools.find(llvm))
        files.write(out, hoisted.program)
    except tools.Refused as reason:
        raise CommandError(f"{'stdin' if program == '-' else program}: {reason}") from None
    except (ToolchainMissing, NotBuilt) as missing:
        raise CommandError(str(missing)) from None
    return hoisted.said
