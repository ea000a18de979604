"""Loads and launches a FlyDSL kernel through mgpu_rt instead of FlyDSL's own runtime.

    python scale.py

A FlyDSL backend tells FlyDSL's JIT which library of mgpu* functions to load. This backend names
mgpu_rt's library and leaves the other parts of FlyDSL unchanged. docs/jit.md lists the features of
FlyDSL that work with such a backend.

Prints:

    scaled: 1.5 3.0 4.5 6.0
    1 module loaded for 100 launches
"""

from __future__ import annotations

import array

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.compiler.backends.rocm import RocmBackend

import mgpu_rt

LAUNCHES = 100


class OverMgpuRt(RocmBackend):
    """FlyDSL's backend for ROCm, which loads mgpu_rt's library."""

    def jit_runtime_lib_basenames(self) -> list[str]:
        """Returns the full path of mgpu_rt's library, and the names of other libraries relative to
        FlyDSL's own folder."""
        _, *others = super().jit_runtime_lib_basenames()
        return [str(mgpu_rt.library_path()), *others]


flyc.register_backend("rocm", OverMgpuRt, force=True)


@flyc.kernel
def scale_kernel(numbers: fx.Pointer, factor: fx.Float32, count: fx.Int32):
    i = fx.block_idx.x * fx.block_dim.x + fx.thread_idx.x
    if i < count:
        numbers[i] = numbers[i] * factor


@flyc.jit
def scale(numbers: fx.Pointer, factor: fx.Float32, count: fx.Int32, stream: fx.Stream):
    blocks = (count + 63) // 64
    scale_kernel(numbers, factor, count).launch(
        grid=(blocks, 1, 1), block=(64, 1, 1), stream=stream
    )


def main() -> None:
    runtime = mgpu_rt.load()
    numbers = array.array("f", [1, 2, 3, 4])
    address, count = numbers.buffer_info()
    size = count * numbers.itemsize
    stream = runtime.mgpuStreamCreate()
    device = runtime.mgpuMemAlloc(size, stream, False)
    runtime.mgpuMemcpy(device, address, size, stream)

    where = fx.Stream(stream)
    for launch in range(LAUNCHES):
        factor = 1.5 if launch == 0 else 1.0
        scale(flyc.from_c_void_p(fx.Float32, device), factor, count, stream=where)

    runtime.mgpuMemcpy(address, device, size, stream)
    runtime.mgpuStreamSynchronize(stream)
    runtime.mgpuMemFree(device, stream)
    runtime.mgpuStreamDestroy(stream)
    print("scaled:", *numbers)
    loaded = mgpu_rt.stats()["cache"]["modules"]["misses"]
    print(f"{loaded} module loaded for {LAUNCHES} launches")


if __name__ == "__main__":
    main()
