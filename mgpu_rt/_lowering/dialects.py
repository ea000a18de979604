"""The passes that lower dialects."""

from __future__ import annotations

import re

#: The pass that lowers a dialect's operations completely.
PASSES = {
    "affine": "lower-affine",
    "arith": "convert-arith-to-llvm",
    "async": "async-to-async-runtime,convert-async-to-llvm",
    "builtin": "reconcile-unrealized-casts",
    "cf": "convert-cf-to-llvm",
    "func": "convert-func-to-llvm",
    "index": "convert-index-to-llvm",
    "linalg": "convert-linalg-to-loops",
    "math": "convert-math-to-llvm",
    "memref": "finalize-memref-to-llvm",
    "scf": "convert-scf-to-cf",
    "vector": "convert-vector-to-llvm",
}

#: The dialects that `pipelines` does not lower: the user must run the dialects' passes.
_YOURS = ("affine", "async", "index", "linalg", "math", "vector")
_OPERATION = re.compile(rf'(?<![\w#!.@%"])({"|".join(_YOURS)})\.\w')
#: gpu-to-llvm accepts gpu.alloc, gpu.dealloc, gpu.memcpy and gpu.memset only with async tokens.
_LAUNCH = re.compile(r"gpu\.launch\b(?!_)")
_WAITING = re.compile(r"gpu\.(?:dealloc|memcpy|memset)\s+(?!async\b)|gpu\.alloc\s+\(")


def left_to_the_caller(text: str) -> dict[str, str]:
    """Returns the passes that the user must run before the program is lowered. A key such as
    "linalg.* (line 3)" names the operations that need the pass, and the first operation's line."""
    found = {match[1]: match for match in reversed([*_OPERATION.finditer(text)])}
    passes = {
        f"{dialect}.* ({_line(text, found[dialect])})": PASSES[dialect]
        for dialect in _YOURS
        if dialect in found
    }
    if waiting := _WAITING.search(text):
        # gpu-async-region connects launches by tokens only if the kernels are outlined as
        # functions.
        first = "gpu-kernel-outlining," if _LAUNCH.search(text) else ""
        plain = f"{waiting[0].split()[0]} without async ({_line(text, waiting)})"
        passes[plain] = f"{first}gpu-async-region"
    return passes


def advice(text: str, complaint: str) -> str:
    """Returns advice to run passes first, if missing passes explain a tool's `complaint`; otherwise
    returns ""."""
    passes = left_to_the_caller(text)
    # If an operation was not lowered, LLVM's complaint may name only the casts that the operation
    # left.
    unclear = "unrealized_conversion_cast" in complaint
    named = [each for each in passes if each.split()[0].rstrip("*") in complaint]
    if not (left := named or (list(passes) if unclear else [])):
        return ""
    options = " ".join(f"--{name}" for each in left for name in passes[each].split(","))
    return (
        f"the program holds {', '.join(left)}, which mgpu-rt does not lower: run mlir-opt "
        f"{options} before"
    )


def _line(text: str, match: re.Match[str]) -> str:
    return f"line {text.count(chr(10), 0, match.start()) + 1}"
