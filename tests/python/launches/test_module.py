"""mgpu_rt.Module: images, results, lifetimes."""

from __future__ import annotations

import ctypes
import gc
import os
import re
import sys
from types import SimpleNamespace
from typing import Any

import pytest

import mgpu_rt
from mgpu_rt import In, MemRef
from mgpu_rt._images import find
from tests.python.launches import KERNELS
from tests.support import lower
from tests.support.child import BACKENDS_WITH_GPU, Mgpu, in_child
from tests.support.folders import folder
from tests.support.images import bundle, code_object, default_chip
from tests.support.sources import SOURCES

numpy = pytest.importorskip("numpy")  # a machine with a GPU may lack it

COUNT = 1000


def image(chip: str | None = None) -> bytes:
    return lower.code_object(KERNELS, chip or default_chip(), image="bin")


# ---- results ----


def scaled(module: mgpu_rt.Module, **options: Any) -> None:
    """Launches a kernel on arrays, and compares the results."""
    array = mgpu_rt.to_device(numpy.arange(COUNT, dtype=numpy.float32))
    module["scale"](4, 256, MemRef(array), 2.0, COUNT, **options)
    assert (array.to_host() == numpy.arange(COUNT) * 2).all()


@in_child(policies=("builtin",), backends=("softgpu", BACKENDS_WITH_GPU[-1]))
def test_kernels_compute_right_results(mgpu: Mgpu) -> None:
    a = numpy.random.default_rng(1).random(COUNT, dtype=numpy.float32)
    b = a[::-1].copy()
    left, right, sums = mgpu_rt.to_device(a), mgpu_rt.to_device(b), mgpu_rt.empty(COUNT)
    module = mgpu_rt.Module(image())
    for grid, block in ((4, 256), ((4,), (256,)), ([4, 1, 1], (256, 1)), (numpy.int64(4), 256)):
        sums.copy_from(numpy.zeros_like(a))
        module["add"](grid, block, MemRef(In(left)), MemRef(In(right)), MemRef(sums), COUNT)
        assert (sums.to_host() == a + b).all()
    scaled(module)
    stream = mgpu_rt.Stream()
    scaled(module, stream=stream)
    scaled(module, stream=0)
    del left, right, sums
    gc.collect()
    assert mgpu.stats()["memory"]["0"]["allocated"] == 0
    assert mgpu.stderr() == ""


@in_child(policies=("builtin",), backends=("softgpu", BACKENDS_WITH_GPU[-1]))
def test_a_device_array_is_passed_by_address(mgpu: Mgpu) -> None:
    """The array supports __cuda_array_interface__, and work on the array's stream is still
    pending."""
    array, result = numpy.arange(COUNT, dtype=numpy.float32), numpy.zeros(COUNT, numpy.float32)
    owner = mgpu.StreamCreate()
    module = mgpu_rt.Module(image())
    place = mgpu.MemAlloc(array.nbytes, owner, False)
    mgpu.lib.mgpuMemcpy(place, mgpu.ffi.from_buffer(array), array.nbytes, owner)
    interface = {
        "data": (int(mgpu.ffi.cast("uintptr_t", place)), False),
        "shape": (COUNT,),
        "typestr": "<f4",
        "version": 3,
        "stream": int(mgpu.ffi.cast("uintptr_t", owner)),
    }
    on_device = SimpleNamespace(__cuda_array_interface__=interface)
    module["scale"](4, 256, MemRef(on_device), 3.0, COUNT)
    mgpu.lib.mgpuMemcpy(mgpu.ffi.from_buffer(result), place, array.nbytes, owner)
    mgpu.StreamSynchronize(owner)
    mgpu.MemFree(place, owner)
    assert (result == array * 3).all()
    assert mgpu.stderr() == ""


@in_child(policies=("builtin",), backends=("custub",))
def test_modules_load_on_nvidias_driver(mgpu: Mgpu) -> None:
    """CUDA receives the image that AMD's HIP would receive; PTX lists the arguments of its
    kernels."""
    module = mgpu_rt.Module(lower.lower(KERNELS, llvm=22, chip="sm_90", image="isa"))
    with pytest.raises(TypeError, match="'scale' takes 7 arguments, and got 6"):
        module["scale"](1, 1, *[64] * 6)
    with pytest.raises(
        ValueError, match="argument 6: 4294967296 does not fit in the parameter's 4 "
    ):
        module["scale"](1, 1, 64, 64, 0, 10, 1, 1 << 32, 10)
    module["scale"]((2, 3), 8, 64, 64, 0, 10, 1, 2.0, 10, shared=128, stream=0x77)
    driver = ctypes.CDLL(os.environ["MGPU_RT_CUDA"])
    driver.custub_take.restype = ctypes.c_char_p
    launches = re.findall(r"^cuLaunchKernel \S+ (.*) \S+ 0$", driver.custub_take().decode(), re.M)
    assert launches == ["2 3 1 8 1 1 80 77"]  # in hexadecimal
    assert mgpu.stderr() == ""


@in_child(policies=("builtin",), MGPU_RT_CACHE="off")
def test_the_image_lives_as_long_as_the_module(mgpu: Mgpu) -> None:
    """Without a cache HIP receives the original image, and may read it until the module is
    unloaded."""
    content = image("gfx90a")
    held = sys.getrefcount(content)
    module = mgpu_rt.Module(content)
    gc.collect()
    assert sys.getrefcount(content) > held
    del module
    assert sys.getrefcount(content) == held


# ---- images ----


@in_child(policies=("builtin",))
def test_every_kind_of_image_is_loaded(mgpu: Mgpu) -> None:
    content, place = image("gfx90a"), folder("images") / "kernels.hsaco"
    place.write_bytes(content)
    compiled = lower.lower(KERNELS, llvm=22)
    views = (content, bytearray(content), memoryview(content), numpy.frombuffer(content, "u1"))
    for given in (*views, place, str(place), compiled, bundle(content)):
        module = mgpu_rt.Module(given)
        assert list(module) == ["add", "scale"]
        assert ("add" in module, "sub" in module) == (True, False)
        module["add"](1, 1, *[0] * 16)
        del module
    assert mgpu.count("hipModuleLoadData") == 2  # the bundle has other bytes
    assert mgpu.stderr() == ""


@in_child(policies=("builtin",))
def test_holding_chooses_one_of_several_images(mgpu: Mgpu) -> None:
    many, same = (lower.lower(SOURCES[name], llvm=22) for name in ("many", "samename"))
    with pytest.raises(ValueError, match=r"holds 5 images, .*: say which by holding="):
        mgpu_rt.Module(many)
    with pytest.raises(ValueError, match="has no kernel 'nothing'; it has "):
        mgpu_rt.Module(many, holding="nothing")
    with pytest.raises(
        ValueError, match=r"kernels first::mark, second::mark: say which by holding"
    ):
        mgpu_rt.Module(same, holding="mark")
    second = mgpu_rt.Module(same, holding="second::mark")
    assert list(second) == ["mark"]
    assert list(second) == ["mark"] and second["second::mark"]
    assert second["second::mark"].name == second["mark"].name == "mark"
    with pytest.raises(KeyError):
        second["first::mark"]
    kernels = [image.kernels[0].name for image in find.contents(many.read_bytes(), "many").images]
    assert kernels[3] in mgpu_rt.Module(many, holding=kernels[3])
    assert mgpu_rt.Module(lower.lower(KERNELS, llvm=22), holding="scale")["scale"]


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        (3, TypeError, "a bytes-like object is required, not 'int'"),
        (None, TypeError, "a bytes-like object is required"),
        ("/nowhere/kernels.hsaco", FileNotFoundError, "/nowhere/kernels.hsaco"),
        (b"", ValueError, "the image is empty"),
        (b"\x7fELF", ValueError, "^the image"),
        (b"some text", ValueError, "the image holds no device code"),
        (code_object("forum", None, "gfx90a")[:3000], ValueError, "the image is .*truncated"),
        (str(KERNELS), ValueError, r"kernels.mlir' holds no device code: lower it"),
    ],
)
def test_other_objects_are_refused_as_images(
    given: Any, error: type[Exception], words: str
) -> None:
    """The package refuses an invalid image before the package calls HIP."""
    with pytest.raises(error, match=words):
        mgpu_rt.Module(given)


# ---- kernels ----


@in_child(policies=("builtin",))
def test_wrong_launches_are_refused(mgpu: Mgpu) -> None:
    module = mgpu_rt.Module(image("gfx90a"))
    assert repr(module) == "<mgpu_rt.Module the image: add, scale>"
    kernel, zeros = module["scale"], [0] * 7
    assert repr(kernel) == "<kernel 'scale' of the image, 7 arguments>"
    with pytest.raises(KeyError, match="has no kernel 'sub'; it has add, scale"):
        module["sub"]
    for sizes in (0, -1, (1, 0), (), (1, 1, 1, 1), "x", 1 << 32, 1.5, None):
        with pytest.raises(ValueError, match=r"kernel 'scale': the grid is .* one to three sizes"):
            kernel(sizes, 1, *zeros)
        with pytest.raises(ValueError, match="kernel 'scale': the block is "):
            kernel(1, sizes, *zeros)
    with pytest.raises(ValueError, match="was compiled for blocks of at most 256 threads"):
        kernel(1, (64, 8), *zeros)
    with pytest.raises(OverflowError):
        kernel(1, 1, *zeros, shared=1 << 31)
    with pytest.raises(TypeError, match="is not a stream"):
        kernel(1, 1, *zeros, stream="x")
    with pytest.raises(TypeError, match="'scale' takes 7 arguments, and got 6"):
        kernel(1, 1, *zeros[1:])
    assert mgpu.count("hipModuleLaunchKernel") == 0
    kernel(1, 1, *zeros)
    assert mgpu.count("hipModuleLaunchKernel") == 1
    assert mgpu.count("hipStreamCreate") == 1  # and the failed launches have released it


@in_child(policies=("builtin",))
def test_launches_hit_the_caches(mgpu: Mgpu) -> None:
    """Repeated requests for a module, a function and a stream are cache hits."""
    for _ in range(5):
        module = mgpu_rt.Module(image("gfx90a"))
        for _ in range(5):
            module["scale"](1, 1, *[0] * 7)
        del module
    names = ("hipModuleLoadData", "hipModuleGetFunction", "hipStreamCreate", "hipModuleUnload")
    assert mgpu.counts(*names) == dict(zip(names, (1, 1, 1, 0), strict=True))
    assert mgpu_rt.stats()["cache"]["modules"]["misses"] == 1


# ---- lifetimes ----


@in_child(policies=("builtin",))
def test_a_kernel_keeps_its_module(mgpu: Mgpu) -> None:
    module = mgpu_rt.Module(code_object("globals", None, "gfx90a"))
    kernel = module[next(iter(module))]
    del module
    gc.collect()
    assert mgpu.count("hipModuleUnload") == 0
    del kernel
    gc.collect()
    assert mgpu.count("hipModuleUnload") == 1
