"""Programs that `mgpu-rt hoist` has rewritten."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

from mgpu_rt._hoist import rewrite, tools
from mgpu_rt._lowering import cache, toolchain
from tests.support import lower
from tests.support.folders import folder
from tests.support.printing import print_library
from tests.support.programs import STOCK
from tests.support.sources import SOURCES

#: The LLVM releases whose MLIR is tested.
RELEASES = (22, 19)


@functools.cache
def dialect(program: str, llvm: int, iterations: int | None) -> bytes:
    """Returns a program in the LLVM dialect."""
    source = SOURCES[program]
    return lower.lower_to_llvm_dialect(source, llvm, iterations=iterations).read_bytes()


@functools.cache
def hoist(given: bytes | str, llvm: int) -> rewrite.Hoisted:
    return rewrite.hoist(given if isinstance(given, bytes) else given.encode(), tools.find(llvm))


@functools.cache
def build(given: bytes, llvm: int) -> Path:
    """Builds the executable of a program in the LLVM dialect, linked with stock."""
    tools = [toolchain.tool(name, llvm) for name in ("mlir-translate", "llc")]
    compiled = cache.kept(
        "hoisted",
        ".o",
        (given, llvm),
        lambda: tools,
        lambda: lower.compile_dialect(given, llvm),
    )
    helper = print_library()
    return lower.link(
        [compiled],
        libraries=[STOCK, helper],
        rpath=[STOCK.parent, helper.parent],
        out=Path(tempfile.mkdtemp(dir=folder("hoisted"))) / "program",
    )
