"""Hooks and recordings of NVIDIA's kernels, whose images do not mark all pointers."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import mgpu_rt
from mgpu_rt.hooks import NanCheck
from mgpu_rt.runtime import Buffer, Image, Record, Recording, Runtime
from tests.devices.gpu import CHIP
from tests.python.runtime.hooked import launch_on
from tests.support import lower
from tests.support.child import Mgpu, in_child

NAN = Path(__file__).with_name("nan.mlir")
COUNT = 64


class Known(Runtime):
    """A runtime that knows a single block of device memory."""

    def buffer_at(self, address: int) -> Buffer | None:
        inside = 0x7000_0000_0000 <= address < 0x7000_0000_1000
        return Buffer(0x7000_0000_0000, 4096) if inside else None


@pytest.mark.parametrize("image", ["bin", "isa"])
def test_pointers_of_a_kernel_are_found(image: str) -> None:
    """If the image does not mark pointers, HIP decides which arguments are addresses. Sizes and
    indices are not addresses."""
    from mgpu_rt._runtime import ffi

    runtime = Known()
    content = ffi.new("char[]", lower.code_object(NAN, CHIP, image=image))  # a 0 ends the text
    runtime._loaded(1, Image.at(int(ffi.cast("uintptr_t", content))))
    runtime._found(2, 1, "halve")
    values = [ffi.new("int64_t *", v) for v in (0x7000_0000_0040, 0x7000_0000_0080, 0, COUNT, 1)]
    params = ffi.new("void *[]", values)
    address = int(ffi.cast("uintptr_t", params))
    launch = launch_on(runtime, 2, address)
    assert launch.values == [0x7000_0000_0040, 0x7000_0000_0080, 0, COUNT, 1]
    assert [number for number, _ in launch.buffers()] == [0]


def _spoiled(mgpu: Mgpu, image: str) -> None:
    """Launches two kernels on the GPU: the first kernel halves 64 numbers, and the second kernel
    corrupts a number."""
    content = lower.code_object(NAN, CHIP, image=image)
    module = mgpu.load(mgpu.image(content + b"\0"))
    stream = mgpu.StreamCreate()
    block = mgpu.MemAlloc(4 * COUNT, stream, False)
    mgpu.Memset32(block, 0x41000000, COUNT, stream)  # 8.0
    begin = int(mgpu.ffi.cast("uintptr_t", block))
    values = [mgpu.ffi.new("int64_t *", value) for value in (begin, begin, 0, COUNT, 1)]
    params = mgpu.ffi.new("void *[]", values)
    mgpu.launch(mgpu.function(module, "halve"), stream, (2, 1, 1), (32, 1, 1), params)
    mgpu.launch(mgpu.function(module, "spoil"), stream, (1, 1, 1), (1, 1, 1), params)
    mgpu.StreamSynchronize(stream)
    mgpu.MemFree(block, stream)
    mgpu.StreamDestroy(stream)
    mgpu.ModuleUnload(module)


@pytest.mark.gpu
@in_child(policies=("builtin",), backends=("cuda",))
def test_a_nan_is_named(mgpu: Mgpu) -> None:
    for image in ("bin", "isa"):
        words = r"spoil<1, 1>.*wrote 1 NaNs, first \[5\] of argument 0"
        with pytest.raises(FloatingPointError, match=words), mgpu_rt.intercept(NanCheck()):
            _spoiled(mgpu, image)


@pytest.mark.gpu
@in_child(policies=("builtin",), backends=("cuda",))
def test_a_recording_replays_with_the_same_result(mgpu: Mgpu) -> None:
    """A replay with another block size has equal results; a replay with a changed kernel has
    different results."""
    for image in ("bin", "isa"):
        with TemporaryDirectory() as folder:
            with mgpu_rt.intercept(Record(output=folder, kernel="halve")):
                _spoiled(mgpu, image)
            recording = Recording(folder)
            assert recording.replay(iterations=3).same
            assert recording.replay(grid=(4,), block=(16,)).same
            (launch,) = recording.launches
            (block,) = launch.blocks
            undone = dataclasses.replace(block, after=block.before)
            recording.launches = [dataclasses.replace(launch, blocks=(undone,))]
            assert not recording.replay().same
