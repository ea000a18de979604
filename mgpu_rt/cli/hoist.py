"""`mgpu-rt hoist`: from file to file."""

from __future__ import annotations

import sys
from pathlib import Path

from mgpu_rt.cli.problem import Problem
from mgpu_rt.hoist import rewrite, tools
from mgpu_rt.images.sharing import NotBuilt
from mgpu_rt.lowering.toolchain import ToolchainMissing


def write(program: str, out: str, llvm: int | None) -> list[str]:
    """Hoists a file into another; returns what there is to say. Raises Problem; then
    nothing was written."""
    try:
        given = sys.stdin.buffer.read() if program == "-" else Path(program).read_bytes()
        hoisted = rewrite.hoist(given, tools.find(llvm))
        if out == "-":
            sys.stdout.buffer.write(hoisted.program)
            sys.stdout.buffer.flush()
        else:
            Path(out).write_bytes(hoisted.program)
    except tools.Refused as reason:
        raise Problem(f"{'stdin' if program == '-' else program}: {reason}") from None
    except OSError as error:
        raise Problem(f"{error.filename or 'stdout'}: {error.strerror}") from None
    except (ToolchainMissing, NotBuilt) as missing:
        raise Problem(str(missing)) from None
    return hoisted.said
