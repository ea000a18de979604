"""Finds the types of a program's host functions, as MLIR prints types."""

from __future__ import annotations

import re

from mgpu_rt._functions.types import split
from mgpu_rt._lowering import toolchain
from mgpu_rt._lowering.strings import unescape

#: A function that has a body and is in no inner module.
_FUNCTION = re.compile(
    r'^  "func\.func"\(\) <\{(?P<properties>.*)\}> \(\{\n(?!  \}\))', re.MULTILINE
)
_NAME = re.compile(r'\bsym_name = "((?:[^"\\]|\\.)*)"')
_TYPE = re.compile(r"\bfunction_type = (.*)")


def function_types(text: str, llvm: int = 22) -> dict[str, str]:
    """Returns the type of each function that the program defines, by name. Runs mlir-opt of the
    release `llvm`. Raises ToolchainMissing or LoweringFailed."""
    command = [toolchain.tool("mlir-opt", llvm), "--mlir-print-op-generic"]
    command += ["--mlir-elide-elementsattrs-if-larger=1", "--mlir-print-local-scope"]
    printed = toolchain.run(command, text.encode()).decode()
    found = {}
    for match in _FUNCTION.finditer(printed):
        name, kind = _NAME.search(match["properties"]), _TYPE.search(match["properties"])
        if name and kind:
            found[unescape(name[1]).decode(errors="surrogateescape")] = split(kind[1])[0]
    return found
