"""The position of a work-item: grids of 1, 2 and 3 dimensions, partial workgroups, lanes."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from softgpu.tests.kernels.program import Launch, Module

MODULE = Module("ids", sample=True)
#: A separate module for kernels with a smaller last group. The tests never compile this module at
#: O=0, because unoptimised code returns the actual size of a smaller group as block_dim.
PARTIAL = Module("partial_groups", sample=True)

_FIELDS = ["thread_id", "block_id", "block_dim", "grid_dim", "global_id"]
_COLUMNS = 3 * len(_FIELDS) + 1


def _kernel(name: str, attributes: str = "") -> str:
    """Returns a kernel whose work-items each write their position to a row of the output."""
    lines = [
        f"%{field}_{axis} = gpu.{field} {axis}" for field in _FIELDS for axis in ("x", "y", "z")
    ]
    lines += [
        "%width = arith.muli %grid_x, %one : index",
        "%rows = arith.muli %global_id_z, %grid_y : index",
        "%row = arith.addi %rows, %global_id_y : index",
        "%before = arith.muli %row, %width : index",
        "%item = arith.addi %before, %global_id_x : index",
    ]
    values = [f"{field}_{axis}" for field in _FIELDS for axis in ("x", "y", "z")]
    lines.append("%lane = gpu.lane_id")
    for column, value in enumerate([*values, "lane"]):
        lines += [
            f"%c{column} = arith.constant {column} : index",
            f"%v{column} = arith.index_cast %{value} : index to i32",
            f"memref.store %v{column}, %out[%item, %c{column}] : memref<?x?xi32>",
        ]
    body = "\n".join(lines)
    return f"""
    gpu.func @{name}(%out: memref<?x?xi32>, %grid_x: index, %grid_y: index) kernel {attributes} {{
      %one = arith.constant 1 : index
      {body}
      gpu.return
    }}"""


def _where(items: tuple[int, ...], block: tuple[int, ...]) -> np.ndarray:
    """Returns the expected positions of a grid's work-items; the last group may be smaller."""
    items3, block3 = (*items, 1, 1)[:3], (*block, 1, 1)[:3]
    z, y, x = np.meshgrid(*(np.arange(n) for n in reversed(items3)), indexing="ij")
    globals_ = [x, y, z]
    threads = [g % b for g, b in zip(globals_, block3, strict=True)]
    blocks = [g // b for g, b in zip(globals_, block3, strict=True)]
    # MLIR declares that all groups have the same size. Optimised code therefore returns the size of
    # a full group as block_dim, even in a smaller last group. In a smaller group, a lane's number
    # depends on the actual size of the group.
    sizes = [np.full_like(x, b) for b in block3]
    own = [np.minimum(b, n - at * b) for at, b, n in zip(blocks, block3, items3, strict=True)]
    counts = [np.full_like(x, -(-n // b)) for n, b in zip(items3, block3, strict=True)]
    linear = (threads[2] * own[1] + threads[1]) * own[0] + threads[0]
    columns = [*threads, *blocks, *sizes, *counts, *globals_, linear % 64]
    return np.stack([c.ravel() for c in columns], axis=1).astype(np.int32)


def _launch(items: tuple[int, ...], block: tuple[int, ...], **launched: object) -> Callable:
    def data(rng: np.random.Generator) -> Launch:
        sizes = (*items, 1)
        out = np.full((math.prod(items), _COLUMNS), -1, np.int32)
        given = [out, np.int64(sizes[0]), np.int64(sizes[1])]
        return Launch(given, {0: _where(items, block)}, block=block, **launched)

    return data


def _whole(grid: tuple[int, ...], block: tuple[int, ...]) -> Callable:
    return _launch(tuple(g * b for g, b in zip(grid, block, strict=True)), block, grid=grid)


def _partial(items: tuple[int, ...], block: tuple[int, ...]) -> Callable:
    return _launch(items, block, work_items=items)


MODULE.add("grid_1d", _kernel("ids"), _whole((5,), (96,)), kernel="ids")
MODULE.add("grid_2d", "", _whole((3, 4), (16, 9)), kernel="ids")
MODULE.add("grid_3d", "", _whole((3, 2, 4), (5, 3, 2)), kernel="ids")
MODULE.add("one_work_item", "", _whole((1,), (1,)), kernel="ids")
# A kernel must declare its group size if this size exceeds 256 work-items.
_LARGE = 'attributes {rocdl.flat_work_group_size = "1,1024"}'
MODULE.add("largest_group", _kernel("largest_group", _LARGE), _whole((2,), (1024,)))
PARTIAL.add("partial_groups_1d", _kernel("ids"), _partial((1000,), (192,)), kernel="ids")
PARTIAL.add("partial_groups_2d", "", _partial((37, 21), (8, 8)), kernel="ids")
PARTIAL.add("partial_groups_3d", "", _partial((7, 5, 9), (4, 2, 4)), kernel="ids")
