"""The types of a program's host functions, as MLIR prints them."""

from __future__ import annotations

import json
import re

from mgpu_rt.lowering import toolchain

#: A function of the program's own level that has a body. gpu.modules are a level deeper.
_FUNCTION = re.compile(
    r'^  "func\.func"\(\) <\{(?P<properties>.*)\}> \(\{\n(?!  \}\))', re.MULTILINE
)
_NAME = re.compile(r'\bsym_name = ("(?:[^"\\]|\\.)*")')
_TYPE = re.compile(r"\bfunction_type = (\(.*?\) -> .*?), sym_name = ")


def function_types(text: str) -> dict[str, str]:
    """Returns the type of each function that the program defines, by its name. Raises
    ToolchainMissing, LoweringFailed."""
    command = [toolchain.tool("mlir-opt", 22), "--mlir-print-op-generic"]
    command += ["--mlir-elide-elementsattrs-if-larger=1", "--mlir-print-local-scope"]
    printed = toolchain.run(command, text.encode()).decode()
    found = {}
    for match in _FUNCTION.finditer(printed):
        name, kind = _NAME.search(match["properties"]), _TYPE.search(match["properties"])
        if name and kind:
            found[_unquoted(name[1])] = kind[1]
    return found


def _unquoted(text: str) -> str:
    """Reads a string of MLIR's, in which a byte may be written as two hexadecimal digits."""
    content = re.sub(r"\\([0-9A-Fa-f]{2})", lambda m: f"\\u00{m[1]}", text)
    return json.loads(content).encode("latin-1", "surrogateescape").decode(errors="replace")
