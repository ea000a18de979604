"""Makes kernels of one thread of operations of linalg without a parallel loop, as linalg.dot.

MLIR's passes make kernels of parallel loops only. They would leave such an operation to the host,
which may not reach the GPU's memory. So a parallel loop of one iteration is put around it.
"""

from __future__ import annotations

import re

#: The passes after which the host code has no operation of linalg but linalg.generic.
PASSES = "gpu-kernel-outlining,func.func(linalg-generalize-named-ops)"
#: An operation without a parallel loop, in mlir-opt's own layout: the indentation, the text up to
#: the end of its body, and its location.
_SERIAL = re.compile(
    r'^( *)(linalg\.generic \{[^\n]*iterator_types = \[(?:"reduction"(?:, )?)*\][^\n]*\n'
    r"(?:.*\n)*?\1\})(.*)$",
    re.MULTILINE,
)


def with_loops(text: str) -> str:
    """Returns a program that mlir-opt printed after PASSES, with loops around such operations."""
    loops = 0

    def in_loop(operation: re.Match[str]) -> str:
        nonlocal loops
        loops += 1
        indent, body, location = operation.groups()
        zero, one = f"%zero.{loops}", f"%one.{loops}"
        return (
            f"{indent}{zero} = arith.constant 0 : index{location}\n"
            f"{indent}{one} = arith.constant 1 : index{location}\n"
            f"{indent}scf.parallel (%only.{loops}) = ({zero}) to ({one}) step ({one}) {{\n"
            f"{indent}{body}{location}\n"
            f"{indent}}}{location}"
        )

    return _SERIAL.sub(in_loop, text)
