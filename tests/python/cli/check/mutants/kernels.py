"""Faults in twenty small kernels, and in the host code around them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from bench import ROOT
from tests.python.cli.check.mutants.form import Mutant

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


@dataclass(frozen=True)
class KernelMutant(Mutant):
    """A fault in the program that runs a kernel."""

    kernel: str = ""

    def original(self) -> str:
        return program(self.kernel)

    @property
    def name(self) -> str:
        return f"{self.kernel} {self.what} {self.old.split()[0]}"


def _of(
    kernel: str, what: str, kind: str, old: str, new: str, line: str, *also: str
) -> KernelMutant:
    return KernelMutant(SOURCE, what, kind, old, new, line, also=also, kernel=kernel)


# ---- the host's code ----

#: for each array, the start of the operation that allocates the array
ALLOCATED = {
    "in": "%t1 = gpu.alloc async [%t0] (%count)",
    "out": "%t3 = gpu.alloc async [%t2] (%count)",
}
_COPY = ": memref<?xf32>, memref<?xf32>\n"
_PICKS = ": memref<?xi32>, memref<?xi32>\n"
FILLED = {
    "in": ("%t4", "[%t3]", f"%t4 = gpu.memcpy async [%t3] %in, %host {_COPY}"),
    "at": ("%t5", "[%t4]", f"%t5 = gpu.memcpy async [%t4] %at, %picks {_PICKS}"),
    "out": ("%t6", "[%t5]", "%t6 = gpu.memset async [%t5] %out, %nothing : memref<?xf32>, f32\n"),
}
READ = "%host, %out"


def _size_cut(kernel: str, array: str) -> KernelMutant:
    old = ALLOCATED[array]
    new = old.replace("%count", "%end")
    return _of(kernel, "size cut", "out-of-bounds", old, new, f"%{array}[")


def _not_filled(kernel: str, array: str, line: str = READ, *also: str) -> KernelMutant:
    token, before, filled = FILLED[array]
    rest = program(kernel).partition(filled)[2]
    old = filled + rest[: rest.index(f"[{token}]") + len(token) + 2]
    new = old.removeprefix(filled).replace(f"[{token}]", before)
    return _of(kernel, "fill left out", "uninitialised", old, new, line, *also)


def _freed_early(kernel: str) -> KernelMutant:
    text = program(kernel)
    launch = text[text.index("%t7 = ") : text.index("%t9 = ")]
    free, after = "%t9 = gpu.dealloc async [%t8] %in : memref<?xf32>\n", "[%t9]"
    between = text.partition(free)[2].partition(after)[0]
    early = "%t9 = gpu.dealloc async [%t6] %in : memref<?xf32>\n    "
    new = early + launch.replace("[%t6]", "[%t9]").rstrip() + "\n" + between + "[%t8]"
    return _of(
        kernel, "free moved up", "use-after-free", launch + free + between + after, new, "%in["
    )


def _host_block_cut(kernel: str) -> KernelMutant:
    """Copies the result to a block of malloc that lacks one element."""
    old = f"%t8 = gpu.memcpy async [%t7] {READ}"
    new = "%small = memref.alloc(%end) : memref<?xf32>\n    " + old.replace("%host", "%small")
    return _of(kernel, "host block cut", "out-of-bounds", old, new, "%small, %out")


# ---- the kernels ----


def _index_shifted(kernel: str) -> KernelMutant:
    old = "%i = gpu.global_id x"
    new = "%g = gpu.global_id x\n  %u = arith.constant 1 : index\n  %i = arith.addi %g, %u : index"
    return _of(kernel, "index shifted", "out-of-bounds", old, new, "[%")


def _group_cut(kernel: str) -> KernelMutant:
    text = kernels()[kernel]
    new = text.replace("64xf32", "32xf32")
    return _of(kernel, "size cut", "outside-workgroup-memory", text, new, "%tile[")


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
