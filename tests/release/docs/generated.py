"""Writes the generated parts of docs/: the ABI, the options, the rule's table.

`python -m tests.release.docs` writes these pages; test_docs.py checks that they are up to date.
"""

from __future__ import annotations

import re

from mgpu_rt import _abi, _layout
from mgpu_rt._cli import options
from tests.proofs.mutants import table
from tests.support.child import ROOT

ABI = """# The ABI

This page lists the functions of `libmlir_rocm_runtime.so`. The tables name the
versions of LLVM whose programs call a function, and the part of mgpu_rt that serves the function.
[csrc/abi.def](../csrc/abi.def) defines the functions. Only
some versions pass the parameters whose names begin with `late_`. The library uses such a parameter
only if the caller must have passed it.
A C program passes all parameters ([commands.md](commands.md#from-c)).

"""

#: The text before the rows of the options' table, which end the page.
OPTIONS = "| variable | default | |\n|---|---|---|\n"

#: The text before the rows of the rule's table, and the text after them.
SHORTCUTS = "|---|---|---|\n", "<!-- end: from tests/proofs/proofs.md -->\n"


#: Maps each function that no LLVM release calls to the compiler that calls the function.
FORKS = {
    "mgpuModuleGetGlobal": "a compiler for OpenMP",
    "mgpuModuleOccupancyMaxActiveBlocks": "FlyDSL",
    "mgpuEventElapsedTime": "mlir-air and others",
    "mgpuTraceBufferRead": "FlyDSL",
    "mgpuTraceBufferClear": "FlyDSL",
}

#: The part that serves a function, if HIP does not: by the first words of the section's comment in
#: abi.def.
SERVED_BY = {
    "Tensor maps": "NVIDIA's driver; on AMD an error",
    "Sparse matrices": "hipSPARSE or cuSPARSE",
}

#: Functions that other runtimes have and this library lacks, with the reason.
LEFT_OUT = """
| left out | why |
|---|---|
| `mgpu*SparseLt*, mgpuCusparseLtCreate2To4SpMat` | 2:4 sparse matrices, on NVIDIA only |
| `flydslAot*, flydslRuntimeTakeError` | FlyDSL links them from an archive of its own |
"""


def _served_by(function: _abi.Function, text: str) -> str:
    if function.name == "mgpuModuleLoadJIT":
        return SERVED_BY["Tensor maps"]
    above = re.split(rf"[( ]{function.name},", text)[0]
    comments = re.findall(r"^/\* (.*)", above, re.MULTILINE) or [""]
    return next((by for key, by in SERVED_BY.items() if comments[-1].startswith(key)), "HIP")


def abi_page() -> str:
    """docs/abi.md."""
    text = _layout.table("abi.def")
    rows = ["| function | called by | served by | signature |", "|---|---|---|---|"]
    for function in _abi.functions():
        by = FORKS.get(function.name) or f"LLVM {function.first_llvm}–{function.last_llvm}"
        kind = f"{function.result} ({function.params})"
        rows.append(f"| `{function.name}` | {by} | {_served_by(function, text)} | `{kind}` |")
    return ABI + "\n".join(rows) + "\n" + LEFT_OUT


def commands_page() -> str:
    """Returns docs/commands.md, which ends with the table of options."""
    text = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    rows = (
        f"| `{option.variable}` | {option.default or '–'} | {option.meaning} |\n"
        for option in options.options()
    )
    return text.partition(OPTIONS)[0] + OPTIONS + "".join(rows)


def rule_page() -> str:
    """Returns docs/rule.md, whose first table has rows from tests/proofs/proofs.md."""
    begin, end = SHORTCUTS
    text = (ROOT / "docs" / "rule.md").read_text(encoding="utf-8")
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    return "".join([before, begin, *table.shortcuts(), end, after])


#: The generated pages by their paths.
PAGES = {
    "docs/abi.md": abi_page,
    "docs/commands.md": commands_page,
    "docs/rule.md": rule_page,
}
