"""Kernels with atomic accesses, each of which lacks one barrier."""

from __future__ import annotations

from tests.python.cli.check.mutants.form import Mutant


def _without(kernel: str, next_line: str, line: str, *also: str) -> Mutant:
    """Returns the kernel without the barrier before a line."""
    return Mutant(
        "tests/python/cli/check/atomics.mlir",
        "barrier taken out",
        "race",
        f"gpu.barrier\n      {next_line}",
        next_line,
        line,
        after=f"gpu.func @{kernel}(",
        also=also,
    )


MUTANTS = (
    _without("histogram", "%x = memref.load", "addi %one, %bins["),
    _without("histogram", "scf.if %clears", "addi %one, %bins["),
    _without("tickets", "%x = memref.load", "addi %one, %next["),
    _without("maximum", "%old =", "maxs %x, %most["),
    _without("maximum", "%y =", "maxs %x, %most["),
    # LLVM then moves the loop's first load before the store.
    _without("product", "%x = memref.load", "%local[", "uninitialised"),
    _without("sums", "%x = memref.load", "addi %x, %out["),
    _without("evens", "%x = memref.load", "addi %one, %places["),
    _without("evens", "scf.if %first", "addi %one, %places["),
    _without("evens", "scf.if %even {", "%begin, %places["),
)
