"""Faults in twenty small kernels, and in the host code around them."""

from __future__ import annotations

from functools import cache

from bench import ROOT
from tests.python.cli.check.mutants.form import Edit, Mutant, changed, left_out, moved_up, replaced

FOLDER = "tests/python/cli/check/mutants"
SOURCE = f"{FOLDER}/kernels.mlir"


@cache
def kernels() -> dict[str, str]:
    """Maps the name of each kernel to the kernel's text."""
    _, *texts = (ROOT / SOURCE).read_text().split("gpu.func @")
    return {text.partition("(")[0]: f"gpu.func @{text}" for text in texts}


def program(kernel: str) -> str:
    """Returns the program that runs a given kernel."""
    host = (ROOT / FOLDER / "host.mlir").read_text().replace("@KERNEL", f"@{kernel}")
    return (
        "module attributes {gpu.container_module} {\n"
        f"  gpu.module @kernels {{\n{kernels()[kernel]}  }}\n{host}}}\n"
    )


def _of(kernel: str, what: str, kind: str, edit: Edit, line: str, *also: str) -> Mutant:
    return Mutant(kernel, what, kind, replaced(program(kernel), edit), line, also)


# ---- the host's code ----

#: For each array, the tokens of the operations that allocate and fill the array.
ALLOCATED = {"in": "t1", "out": "t3"}
FILLED = {"in": "t4", "at": "t5", "out": "t6"}
READ = "%host, %out"


def _size_cut(kernel: str, array: str) -> Mutant:
    edit = changed(program(kernel), ALLOCATED[array], "%count", "%end")
    return _of(kernel, "size cut", "out-of-bounds", edit, f"%{array}[")


def _not_filled(kernel: str, array: str, line: str = READ, *also: str) -> Mutant:
    edit = left_out(program(kernel), FILLED[array])
    return _of(kernel, "fill left out", "uninitialised", edit, line, *also)


def _freed_early(kernel: str) -> Mutant:
    edit = moved_up(program(kernel), "t9", "t7")
    return _of(kernel, "free moved up", "use-after-free", edit, "%in[")


def _host_block_cut(kernel: str) -> Mutant:
    """Copies the result to a block of malloc that lacks one element."""
    old, new = changed(program(kernel), "t8", "%host", "%small")
    new = f"    %small = memref.alloc(%end) : memref<?xf32>\n{new}"
    return _of(kernel, "host block cut", "out-of-bounds", (old, new), "%small, %out")


# ---- the kernels ----


def _index_shifted(kernel: str) -> Mutant:
    old, new = changed(program(kernel), "i", "%i", "%g")
    new += "  %u = arith.constant 1 : index\n  %i = arith.addi %g, %u : index\n"
    return _of(kernel, "index shifted", "out-of-bounds", (old, new), "[%")


def _group_cut(kernel: str) -> Mutant:
    text = kernels()[kernel]
    new = text.replace("64xf32", "32xf32")
    return _of(kernel, "size cut", "outside-workgroup-memory", (text, new), "%tile[")


_INDEXED = {"gather": "%in[%from]", "power": "scf.for", "select": READ}

MUTANTS = (
    *(_index_shifted(kernel) for kernel in kernels() if kernel != "transpose"),
    *(
        _not_filled(kernel, "in", "scf.if" if kernel == "positive" else READ)
        for kernel in kernels()
        if kernel not in ("count", "bins")
    ),
    *(_not_filled(kernel, "at", line) for kernel, line in _INDEXED.items()),
    _not_filled("scatter", "at", "%out[%to]", "race"),
    *(_not_filled(kernel, "out") for kernel in ("axpy", "count", "bins")),
    *(_size_cut(kernel, "in") for kernel in ("twice", "stencil", "mirror", "rows", "product")),
    *(_size_cut(kernel, "out") for kernel in ("clamp", "transpose", "reverse", "pair", "scatter")),
    *map(_freed_early, ("twice", "gather", "rotate", "total", "count", "polynomial")),
    *map(_group_cut, ("reverse", "rotate", "total")),
    *map(_host_block_cut, ("twice", "total")),
)
