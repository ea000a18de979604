"""Races between the waves of a launch."""

from __future__ import annotations

from tests.python.cli.check.mutants.form import Mutant


def _race(kernel: str, what: str, old: str, new: str, line: str) -> Mutant:
    source = "tests/python/cli/check/no_races.mlir"
    return Mutant(source, what, "race", old, new, line, after=f"gpu.func @{kernel}(")


_BARRIER, _INDEX, _SCOPE = "barrier taken out", "index shifted", "scope narrowed"
_ATOMIC = "atomic access made plain"

MUTANTS = (
    _race("barriers", _BARRIER, "gpu.barrier\n        %y", "%y", "%tile["),
    _race("barriers", _BARRIER, "gpu.barrier\n      }", "}", "%tile["),
    _race("histogram", _BARRIER, "gpu.barrier\n      %old", "%old", "%bins["),
    _race("histogram", _BARRIER, "gpu.barrier\n      %sum", "%sum", "%bins["),
    _race(
        "histogram",
        _ATOMIC,
        "%all = memref.atomic_rmw addi %sum, %out[%bin] : (i32, memref<?xi32>) -> i32",
        "%v = arith.index_cast %thread : index to i32\n"
        "      memref.store %v, %out[%bin] : memref<?xi32>",
        "%out[%bin]",
    ),
    _race(
        "one_value",
        _INDEX,
        "memref.store %x, %out[%zero]",
        "%i = gpu.global_id x\n      %z = arith.index_cast %i : index to i32\n"
        "      memref.store %z, %out[%zero]",
        "%out[%zero]",
    ),
    _race(
        "one_value",
        _INDEX,
        "memref.store %y, %shared[%one]",
        "%t = gpu.thread_id x\n      %v = arith.index_cast %t : index to i32\n"
        "      memref.store %v, %shared[%one]",
        "%shared[%one]",
    ),
    _race(
        "own_bytes",
        _INDEX,
        "%dword = arith.muli %lane, %pair : index",
        "%dword = arith.addi %lane, %lane : index",
        "%out[%at]",
    ),
    _race("flag", _SCOPE, 'llvm.fence syncscope("agent") acquire\n', "", "%data[%first]"),
    _race("flag", _SCOPE, 'fence syncscope("agent")', 'fence syncscope("workgroup")', "%data["),
    _race("last_adds", _SCOPE, '"agent") acq_rel', '"agent") release', "%data["),
    _race("last_adds", _SCOPE, '"agent") acq_rel', '"workgroup") acq_rel', "%data["),
)
