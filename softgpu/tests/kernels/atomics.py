"""Atomics on global and workgroup memory, with and without the returned old value."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from softgpu.tests.kernels.program import WORKGROUP, Launch, Module

MODULE = Module("atomics", sample=True)

TYPES = {"i32": np.int32, "i64": np.int64, "f32": np.float32, "f64": np.float64}
#: The compiler implements narrow atomics as loops around a 32-bit compare-and-swap.
NARROW = {"i8": np.int8, "i16": np.int16, "f16": np.float16}
CELLS = 8
ITEMS = 512


def _wrapping_sum(x: np.ndarray) -> np.ndarray:
    return x.sum(dtype=x.dtype)


def _unsigned(formula: np.ufunc) -> Callable[[np.ndarray], np.generic]:
    def of_signed(x: np.ndarray) -> np.generic:
        return formula.reduce(x.view(x.dtype.str.replace("i", "u"))).view(x.dtype)

    return of_signed


_INTEGER: dict[str, Callable] = {
    "addi": _wrapping_sum,
    "andi": np.bitwise_and.reduce,
    "ori": np.bitwise_or.reduce,
    "xori": np.bitwise_xor.reduce,
    "maxs": np.max,
    "mins": np.min,
    "maxu": _unsigned(np.maximum),
    "minu": _unsigned(np.minimum),
}
# The numbers are integers, so sums do not depend on the order of the work-items.
_FLOAT: dict[str, Callable] = {
    "addf": np.sum,
    "maximumf": np.max,
    "minimumf": np.min,
    "maxnumf": np.max,
    "minnumf": np.min,
}


def _global(name: str, operation: str, kind: str) -> str:
    return f"""
    gpu.func @{name}(%in: memref<?x{kind}>, %cells: memref<?x{kind}>) kernel {{
      %i = gpu.global_id x
      %mask = arith.constant {CELLS - 1} : index
      %cell = arith.andi %i, %mask : index
      %x = memref.load %in[%i] : memref<?x{kind}>
      %old = memref.atomic_rmw {operation} %x, %cells[%cell] : ({kind}, memref<?x{kind}>) -> {kind}
      gpu.return
    }}"""


def _workgroup(name: str, operation: str, kind: str) -> str:
    """Returns a kernel that runs the atomics in workgroup memory. The first lanes copy the cells
    from global memory before the atomics, and copy the cells back afterwards."""
    local = f"memref<{CELLS}x{kind}, {WORKGROUP}>"
    return f"""
    gpu.func @{name}(%in: memref<?x{kind}>, %cells: memref<?x{kind}>)
        workgroup(%local: {local}) kernel {{
      %t = gpu.thread_id x
      %some = arith.constant {CELLS} : index
      %mask = arith.constant {CELLS - 1} : index
      %cell = arith.andi %t, %mask : index
      %first = arith.cmpi ult, %t, %some : index
      scf.if %first {{
        %start = memref.load %cells[%t] : memref<?x{kind}>
        memref.store %start, %local[%t] : {local}
      }}
      gpu.barrier
      %x = memref.load %in[%t] : memref<?x{kind}>
      %old = memref.atomic_rmw {operation} %x, %local[%cell] : ({kind}, {local}) -> {kind}
      gpu.barrier
      scf.if %first {{
        %end = memref.load %local[%t] : {local}
        memref.store %end, %cells[%t] : memref<?x{kind}>
      }}
      gpu.return
    }}"""


def _values(rng: np.random.Generator, kind: str, count: int) -> np.ndarray:
    dtype = {**TYPES, **NARROW}[kind]
    if kind[0] == "f":
        largest = 8 if kind == "f16" else 1000
        return rng.integers(-largest, largest, count).astype(dtype)
    return rng.integers(0, 256, count * np.dtype(dtype).itemsize, np.uint8).view(dtype)


def _combined(formula: Callable, kind: str, block: int, grid: int) -> Callable:
    def data(rng: np.random.Generator) -> Launch:
        count = block * grid
        x, cells = _values(rng, kind, count), _values(rng, kind, CELLS)
        columns = [np.append(x[cell::CELLS], cells[cell]) for cell in range(CELLS)]
        expected = np.array([formula(column) for column in columns], cells.dtype)
        return Launch([x, cells], {1: expected}, grid=(grid,), block=(block,))

    return data


for _kind in [*TYPES, *NARROW]:
    for _operation, _formula in (_INTEGER if _kind[0] == "i" else _FLOAT).items():
        _name = f"global_{_operation}_{_kind}"
        MODULE.add(_name, _global(_name, _operation, _kind), _combined(_formula, _kind, 128, 4))
        _name = f"workgroup_{_operation}_{_kind}"
        MODULE.add(_name, _workgroup(_name, _operation, _kind), _combined(_formula, _kind, 256, 1))


def _tickets(name: str, kind: str) -> str:
    """Returns a kernel in which each work-item adds 1 to a counter, and takes the counter's old
    value as a ticket. Each ticket must occur once."""
    return f"""
    gpu.func @{name}(%counter: memref<?x{kind}>, %taken: memref<?x{kind}>) kernel {{
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : {kind}
      %ticket = memref.atomic_rmw addi %one, %counter[%zero] : ({kind}, memref<?x{kind}>) -> {kind}
      %at = arith.index_cast %ticket : {kind} to index
      %old = memref.atomic_rmw addi %one, %taken[%at] : ({kind}, memref<?x{kind}>) -> {kind}
      gpu.return
    }}"""


def _taken(kind: str) -> Callable:
    def data(rng: np.random.Generator) -> Launch:
        counter, taken = np.zeros(1, TYPES[kind]), np.zeros(ITEMS, TYPES[kind])
        expected = {0: counter + ITEMS, 1: taken + 1}
        return Launch([counter, taken], expected, grid=(4,), block=(128,))

    return data


for _kind in ("i32", "i64"):
    MODULE.add(f"tickets_{_kind}", _tickets(f"tickets_{_kind}", _kind), _taken(_kind))


# ---- compare-and-swap loops ----------------------------------------------------------------------


def _loop(name: str, kind: str, body: str) -> str:
    memory = f"memref<?x{kind}>"
    return f"""
    gpu.func @{name}(%in: memref<?x{kind}>, %cells: {memory}) kernel {{
      %i = gpu.global_id x
      %mask = arith.constant {CELLS - 1} : index
      %cell = arith.andi %i, %mask : index
      %x = memref.load %in[%i] : memref<?x{kind}>
      %old = memref.generic_atomic_rmw %cells[%cell] : {memory} {{
        ^bb0(%now: {kind}):
          {body}
          memref.atomic_yield %new : {kind}
      }}
      gpu.return
    }}"""


def _product(x: np.ndarray) -> np.ndarray:
    return np.multiply.reduce(x, dtype=x.dtype)


_LOOPS = {
    "muli": ("%new = arith.muli %now, %x : {t}", _product),
    # Adds the square of a value to the cell. No atomic instruction adds a square, and the order of
    # the additions does not matter.
    "add_square": (
        "%xx = arith.muli %x, %x : {t}\n%new = arith.addi %now, %xx : {t}",
        lambda x: _wrapping_sum(np.append(x[:-1] * x[:-1], x[-1])),
    ),
}
for _kind in ("i32", "i64"):
    for _name, (_body, _formula) in _LOOPS.items():
        _full = f"loop_{_name}_{_kind}"
        MODULE.add(
            _full, _loop(_full, _kind, _body.format(t=_kind)), _combined(_formula, _kind, 128, 4)
        )
