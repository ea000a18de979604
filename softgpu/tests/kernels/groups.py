"""Cooperation of the work-items of a group: barriers, workgroup memory, shuffles and reductions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from softgpu.tests.kernels.program import WORKGROUP, Launch, Module

MEMORY = Module("workgroup_memory", sample=True, unoptimised=True)
SHUFFLES = Module("shuffles", sample=True)
REDUCTIONS = Module("reductions")
SUBGROUPS = Module(
    "subgroups",
    first="test-gpu-subgroup-reduce-lowering{expand-to-shuffles target=gfx90a}",
    sample=True,
)
SUBGROUP_SHUFFLES = Module(
    "subgroup_shuffles", first="test-gpu-subgroup-reduce-lowering{expand-to-shuffles}"
)

LANES = 64


# ---- workgroup memory ----------------------------------------------------------------------------


@MEMORY.program(f"""
    gpu.func @reversed_in_group(%in: memref<?xf32>, %out: memref<?xf32>)
        workgroup(%tile: memref<256xf32, {WORKGROUP}>) kernel {{
      %t = gpu.thread_id x
      %i = gpu.global_id x
      %last = arith.constant 255 : index
      %x = memref.load %in[%i] : memref<?xf32>
      memref.store %x, %tile[%t] : memref<256xf32, {WORKGROUP}>
      gpu.barrier
      %other = arith.subi %last, %t : index
      %y = memref.load %tile[%other] : memref<256xf32, {WORKGROUP}>
      memref.store %y, %out[%i] : memref<?xf32>
      gpu.return
    }}""")
def reversed_in_group(rng: np.random.Generator) -> Launch:
    x = rng.random(1024, np.float32)
    expected = x.reshape(4, 256)[:, ::-1].ravel()
    return Launch([x, np.zeros_like(x)], {1: expected}, grid=(4,), block=(256,))


@MEMORY.program(f"""
    gpu.func @static_and_dynamic(%in: memref<?xi32>, %out: memref<?xi32>)
        workgroup(%fixed: memref<64xi32, {WORKGROUP}>) kernel {{
      %t = gpu.thread_id x
      %zero = arith.constant 0 : index
      %mask = arith.constant 63 : index
      %size = gpu.block_dim x
      %raw = gpu.dynamic_shared_memory : memref<?xi8, {WORKGROUP}>
      %free = memref.view %raw[%zero][%size] : memref<?xi8, {WORKGROUP}>
              to memref<?xi32, {WORKGROUP}>
      %x = memref.load %in[%t] : memref<?xi32>
      %y = arith.addi %x, %x : i32
      memref.store %x, %fixed[%t] : memref<64xi32, {WORKGROUP}>
      memref.store %y, %free[%t] : memref<?xi32, {WORKGROUP}>
      gpu.barrier
      %other = arith.xori %t, %mask : index
      %a = memref.load %fixed[%other] : memref<64xi32, {WORKGROUP}>
      %b = memref.load %free[%t] : memref<?xi32, {WORKGROUP}>
      %sum = arith.addi %a, %b : i32
      memref.store %sum, %out[%t] : memref<?xi32>
      gpu.return
    }}""")
def static_and_dynamic(rng: np.random.Generator) -> Launch:
    x = rng.integers(-1000, 1000, 64, np.int32)
    return Launch([x, np.zeros_like(x)], {1: x[::-1] + 2 * x}, shared=256)


# ---- shuffles ------------------------------------------------------------------------------------


_VALID = {
    "up": "%ok = arith.cmpi sge, %at, %by : i32",
    "down": "%sum = arith.addi %at, %by : i32\n%ok = arith.cmpi slt, %sum, %width : i32",
    "xor": "%ok = arith.constant true",
    "idx": "%ok = arith.constant true",
}
_SHUFFLED_TYPES = {"i32": np.int32, "f32": np.float32, "i64": np.int64, "f64": np.float64}


def _shuffle_kernel(name: str, mode: str, kind: str, width: int) -> str:
    """Returns the value of another lane, or 1 if that lane does not exist. The kernel ignores the
    shuffle's validity flag, because the lowering sets the flag to true for every shuffle in mode
    `up`."""
    one = "1" if kind[0] == "i" else "1.0"
    return f"""
    gpu.func @{name}(%in: memref<?x{kind}>, %out: memref<?x{kind}>, %by: i32) kernel {{
      %i = gpu.global_id x
      %width = arith.constant {width} : i32
      %mask = arith.constant {width - 1} : i32
      %one = arith.constant {one} : {kind}
      %x = memref.load %in[%i] : memref<?x{kind}>
      %y, %valid = gpu.shuffle {mode} %x, %by, %width : {kind}
      %item = arith.index_cast %i : index to i32
      %at = arith.andi %item, %mask : i32
      {_VALID[mode]}
      %r = arith.select %ok, %y, %one : {kind}
      memref.store %r, %out[%i] : memref<?x{kind}>
      gpu.return
    }}"""


def _shuffled(mode: str, kind: str, width: int, by: int) -> Callable:
    def data(rng: np.random.Generator) -> Launch:
        dtype = _SHUFFLED_TYPES[kind]
        x = rng.integers(-(2**31), 2**31, 4 * LANES).astype(dtype)
        rows = x.reshape(-1, width)
        at = np.arange(width)
        source = {"up": at - by, "down": at + by, "xor": at ^ by, "idx": np.full(width, by)}[mode]
        valid = (source >= 0) & (source < width)
        expected = np.where(valid, rows[:, source % width], dtype(1)).ravel()
        return Launch([x, np.zeros_like(x), np.int32(by)], {1: expected}, grid=(2,), block=(128,))

    return data


for _mode, _by in (("xor", 5), ("up", 3), ("down", 7), ("idx", 11)):
    for _kind, _width in (("i32", 64), ("f32", 32), ("i64", 64), ("f64", 16)):
        if _mode == "idx" and _width != LANES:
            continue  # the lowering counts lanes from the first lane of the wave, not of the group
        _name = f"shuffle_{_mode}_{_kind}_{_width}"
        SHUFFLES.add(
            _name,
            _shuffle_kernel(_name, _mode, _kind, _width),
            _shuffled(_mode, _kind, _width, _by),
        )


# ---- reductions over the group and over the wave -------------------------------------------------


def _sum(x: np.ndarray) -> np.ndarray:
    return x.astype(np.longdouble).sum(axis=1) if x.dtype.kind == "f" else x.sum(1, x.dtype)


def _product(x: np.ndarray) -> np.ndarray:
    return x.astype(np.longdouble).prod(axis=1) if x.dtype.kind == "f" else x.prod(1, x.dtype)


def _unsigned(formula: Callable) -> Callable:
    def of_signed(x: np.ndarray) -> np.ndarray:
        return formula.reduce(x.view(x.dtype.str.replace("i", "u")), axis=1).view(x.dtype)

    return of_signed


_KINDS: dict[str, Callable] = {
    "add": _sum,
    "mul": _product,
    "and": lambda x: np.bitwise_and.reduce(x, axis=1),
    "or": lambda x: np.bitwise_or.reduce(x, axis=1),
    "xor": lambda x: np.bitwise_xor.reduce(x, axis=1),
    "minsi": lambda x: x.min(axis=1),
    "maxsi": lambda x: x.max(axis=1),
    "minui": _unsigned(np.minimum),
    "maxui": _unsigned(np.maximum),
    "minimumf": lambda x: x.min(axis=1),
    "maximumf": lambda x: x.max(axis=1),
    "minnumf": lambda x: np.fmin.reduce(x, axis=1),
    "maxnumf": lambda x: np.fmax.reduce(x, axis=1),
}
_FLOAT_KINDS = ["add", "mul", "minimumf", "maximumf", "minnumf", "maxnumf"]
_INTEGER_KINDS = ["add", "mul", "and", "or", "xor", "minsi", "maxsi", "minui", "maxui"]


def _reduce_kernel(name: str, operation: str, kind: str) -> str:
    return f"""
    gpu.func @{name}(%in: memref<?x{kind}>, %out: memref<?x{kind}>) kernel {{
      %i = gpu.global_id x
      %x = memref.load %in[%i] : memref<?x{kind}>
      %r = {operation} : ({kind}) -> {kind}
      memref.store %r, %out[%i] : memref<?x{kind}>
      gpu.return
    }}"""


def _reduced(formula: Callable, dtype: type, width: int, block: int, bound: float) -> Callable:
    """Returns a function that generates a reduction's input and expected output. Every lane of a
    group of ``width`` neighbouring lanes receives the group's result."""

    def data(rng: np.random.Generator) -> Launch:
        count = 3 * block
        if np.dtype(dtype).kind == "f":
            x = (rng.uniform(0.9, 1.1, count) * rng.choice([-1, 1], count)).astype(dtype)
        else:
            x = rng.integers(0, 256, count * np.dtype(dtype).itemsize, np.uint8).view(dtype) | 1
        expected = np.repeat(formula(x.reshape(-1, width)), width)
        return Launch(
            [x, np.zeros_like(x)],
            {1: expected},
            grid=(3,),
            block=(block,),
            ulp=0 if expected.dtype == x.dtype else bound,
            absolute=0 if expected.dtype == x.dtype else bound * float(np.finfo(dtype).eps),
        )

    return data


for _kind, _type, _names in (
    ("i32", np.int32, _INTEGER_KINDS),
    ("f32", np.float32, _FLOAT_KINDS),
):
    for _reduction in _names:
        _name = f"all_reduce_{_reduction}_{_kind}"
        REDUCTIONS.add(
            _name,
            _reduce_kernel(_name, f"gpu.all_reduce {_reduction} %x uniform {{}}", _kind),
            # The lowering is correct only if the number of lanes in the group is 32 times a power
            # of two.
            _reduced(_KINDS[_reduction], _type, 256, 256, 256),
        )
        # Reduces over 64 lanes with exchanges between lanes, and over 32 lanes with shuffles.
        for _module, _width in ((SUBGROUPS, 64), (SUBGROUP_SHUFFLES, 32)):
            _name = f"subgroup_reduce_{_reduction}_{_kind}"
            _module.add(
                _name,
                _reduce_kernel(_name, f"gpu.subgroup_reduce {_reduction} %x uniform", _kind),
                _reduced(_KINDS[_reduction], _type, _width, 128, _width),
            )
