"""Gives operations without async tokens of their own, beside operations that have tokens.

MLIR lowers some operations only with tokens. Its pass gpu-async-region gives them some, but makes
one chain of a function's operations: it also orders those whose tokens leave them unordered.
"""

from __future__ import annotations

import itertools
import re

#: The pass after which each operation that waits is on a line of its own.
PASSES = "gpu-kernel-outlining"
#: An operation without async, in mlir-opt's own layout: the indentation, the result, the name, the
#: tokens that it waits for, its operands, and its location. MLIR lowers a launch without tokens,
#: and memory that the host shares only without.
_WAITING = re.compile(
    r"^( *)(?:(%\S+) = )?(gpu\.(?:alloc|dealloc|memcpy|memset|launch_func(?= +\[)))\b"
    r"(?! +(?:async|host_shared)\b) +(?:\[(.*?)\] *)?(.*)( loc\(.*\))$",
    re.MULTILINE,
)


def with_waits(text: str) -> str:
    """Returns a program that mlir-opt printed after PASSES. The host waits for each operation that
    had no async, and for no other."""
    numbers = itertools.count()

    def waited(operation: re.Match[str]) -> str:
        indent, result, name, tokens, operands, location = operation.groups()
        number = next(numbers)
        before, after = f"%before.{number}", f"%after.{number}"
        results = f"{result}, {after}" if result else after
        return (
            f"{indent}{before} = gpu.wait async [{tokens or ''}]{location}\n"
            f"{indent}{results} = {name} async [{before}] {operands}{location}\n"
            f"{indent}gpu.wait [{after}]{location}"
        )

    return _WAITING.sub(waited, text)
