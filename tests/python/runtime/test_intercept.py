"""A runtime that receives the calls of a Python program: `with mgpu_rt.intercept(...)`."""

from __future__ import annotations

import os
import sys
from typing import ClassVar

import pytest

import mgpu_rt
from mgpu_rt import _abi
from mgpu_rt.runtime import CachedRuntime, Hip, Image, Launch, Runtime
from mgpu_rt.runtime._base import METHODS
from tests.python.runtime.runtimes import PassAll
from tests.support.child import Mgpu, environment, in_child
from tests.support.images import code_object
from tests.support.patience import run_process

alone = {"policies": ("builtin",)}


def test_every_function_without_a_structure_has_a_method() -> None:
    assert list(METHODS) == [function.name for function in _abi.overridable()]
    assert all(callable(getattr(Runtime, method)) for method in METHODS.values())


class Streams(Runtime):
    def __init__(self, **settings: object) -> None:
        super().__init__(**settings)
        self.seen: list[str] = []

    def stream_create(self) -> int:
        self.seen.append("create")
        return super().stream_create()


@in_child(**alone)
def test_only_overridden_methods_are_asked(mgpu: Mgpu) -> None:
    from mgpu_rt.runtime import _adapters

    assert _adapters.overridden(Streams()) == ["mgpuStreamCreate"]
    with mgpu_rt.intercept(Streams()) as runtime:
        stream = mgpu.StreamCreate()
        mgpu.StreamDestroy(stream)
    mgpu.StreamDestroy(mgpu.StreamCreate())
    assert runtime.seen == ["create"]


@in_child(**alone)
def test_threads_may_leave_in_any_order(mgpu: Mgpu) -> None:
    """The program installs two runtimes, and removes the older runtime. The newer runtime stays
    installed until the program removes the newer runtime."""
    first, second = mgpu_rt.intercept(Streams()), mgpu_rt.intercept(Streams())
    outer, inner = first.__enter__(), second.__enter__()
    first.__exit__(None, None, None)
    mgpu.StreamDestroy(mgpu.StreamCreate())
    assert (outer.seen, inner.seen) == ([], ["create"])
    second.__exit__(None, None, None)
    mgpu.StreamDestroy(mgpu.StreamCreate())
    assert (outer.seen, inner.seen) == ([], ["create"])


class Fails(Runtime):
    def stream_create(self) -> int:
        raise KeyboardInterrupt


@in_child(**alone)
def test_an_exception_ends_the_overrides(mgpu: Mgpu) -> None:
    with pytest.raises(KeyboardInterrupt), mgpu_rt.intercept(Fails()):
        assert not mgpu.StreamCreate()
        assert mgpu.StreamCreate()  # from then on the library answers


class RefusesAll(Runtime):
    def stream_create(self) -> int:
        raise mgpu_rt.HipError("hipStreamCreate", 2, "hipErrorOutOfMemory")


@in_child(**alone)
def test_a_refusal_is_the_threads_last_error(mgpu: Mgpu) -> None:
    with mgpu_rt.intercept(RefusesAll()):
        assert not mgpu.StreamCreate()
    assert mgpu.stderr() == "'hipStreamCreate(&stream)' failed with 'hipErrorOutOfMemory'\n"
    assert mgpu.ffi.string(mgpu.lib.mgpu_rt_take_error()) == b"hipErrorOutOfMemory"


class Changes(Runtime):
    """A hook that launches the kernel twice, then with a doubled grid, and skips grids of one
    block."""

    def launch_kernel(self, launch: Launch) -> None:
        if launch.grid == (1, 1, 1):
            return
        super().launch_kernel(launch)
        super().launch_kernel(launch)
        doubled = (2 * size for size in launch.grid)
        given = (*launch.block, launch.shared, launch.stream, launch.params, launch.extra, 0)
        self.native.mgpuLaunchKernel(launch.function, *doubled, *given)


@in_child(**alone)
def test_launches_may_be_changed_doubled_and_left_out(mgpu: Mgpu) -> None:
    with mgpu_rt.intercept(Changes()):
        module = mgpu.load(mgpu.image(code_object("forum")))
        function = mgpu.function(module, "test_func")
        mgpu.launch(function, grid=(1, 1, 1))
        assert mgpu.count("hipModuleLaunchKernel") == 0
        mgpu.launch(function, grid=(3, 1, 1))
        assert mgpu.count("hipModuleLaunchKernel") == 3


class Sees(PassAll):
    launches: ClassVar[list[Launch]] = []

    def launch_kernel(self, launch: Launch) -> None:
        self.launches.append(launch)
        super().launch_kernel(launch)


@in_child(**alone)
def test_each_kind_of_launch_goes_on_to_the_library(mgpu: Mgpu) -> None:
    """The library gets all arguments through a runtime in Python, and prints the same messages as
    without the runtime."""

    def launch() -> list[str]:
        null = mgpu.null
        mgpu.LaunchKernelCooperative(null, 1, 2, 3, 0, 0, 0, 4, 5, 6, 7, null, null, null)
        mgpu.LaunchClusterKernel(null, 1, 1, 2, 1, 2, 3, 4, 5, 6, 7, null, null, null, 0)
        mgpu.LaunchKernelRT(null, 1, 2, 3, 4, 5, 6, 7, null, null, null, 0)
        lines = mgpu.stderr().splitlines()
        return [line for line in lines if not line.startswith("mgpu_rt: ")]

    plain = launch()
    with mgpu_rt.intercept(Sees()) as runtime:
        assert launch() == plain != []
    first, second, third = runtime.launches
    assert (first.cooperative, first.cluster, first.grid) == (True, None, (1, 2, 3))
    assert (second.cluster, second.block, second.shared) == ((1, 1, 2), (4, 5, 6), 7)
    assert third.symbol and third.grid == (1, 2, 3)


@in_child(**alone)
def test_images_are_known_by_their_bytes(mgpu: Mgpu) -> None:
    content = code_object("forum")
    first, second = mgpu.image(content), mgpu.image(content)
    address = [int(mgpu.ffi.cast("uintptr_t", place)) for place in (first, second)]
    assert Image.at(address[0]) is Image.at(address[1])
    assert Image.at(address[0]).content == content
    first[9] = b"\7"  # an equal address with other bytes
    assert Image.at(address[0]) is not Image.at(address[1])
    assert Image.at(address[1]).is_constant


@in_child(backends=("stub", "softgpu"), **alone)
def test_python_uses_the_open_hip(mgpu: Mgpu) -> None:
    """The process has only one HIP, whose handles the library uses."""
    mgpu.MemFree(mgpu.null, mgpu.null)
    hip = Hip(os.environ["MGPU_RT_HIP"])
    with pytest.raises(AttributeError):
        hip.Nothing()
    stream = hip.StreamCreate()
    assert hip.stream_idle(stream)
    hip.StreamDestroy(stream)
    block = mgpu.MemAlloc(4096, mgpu.null, False)
    address = int(mgpu.ffi.cast("uintptr_t", block))
    assert hip.address_range(address + 5) == (address, 4096)
    assert hip.address_range(id(hip)) is None
    with pytest.raises(
        mgpu_rt.HipError, match=r"'hipModuleUnload\(module\)' failed with 'hipError"
    ):
        hip.ModuleUnload(0)
    with mgpu_rt.intercept(CachedRuntime(hip)):
        module = mgpu.load(mgpu.image(code_object("forum")))
        mgpu.launch(mgpu.function(module, "test_func"))
        mgpu.ModuleUnload(module)
    with open("/proc/self/maps") as maps:
        names = {line.split()[-1] for line in maps if "libamdhip64" in line}
    assert len(names) == 1
    assert mgpu.stderr() == ""


# ---- from C ----


@in_child(**alone)
def test_a_c_function_can_replace_a_function(mgpu: Mgpu) -> None:
    """mgpu_rt_intercept replaces the function that a name selects. NULL in place of a function
    restores the library's function. An unknown name is refused."""
    ffi, lib = mgpu.ffi, mgpu.lib
    own = ffi.cast("hipStream_t (*)(void)", lib.mgpu_rt_native(b"mgpuStreamCreate"))
    asked = []

    @ffi.callback("hipStream_t(void)")
    def create():
        asked.append(1)
        return own()

    assert lib.mgpu_rt_intercept(b"mgpuStreamCreate", ffi.cast("mgpu_rt_function", create)) == 0
    stream = lib.mgpuStreamCreate()
    assert lib.mgpu_rt_intercept(b"mgpuStreamCreate", ffi.NULL) == 0
    lib.mgpuStreamDestroy(stream)
    assert lib.mgpuStreamCreate() == stream
    assert asked == [1]
    assert lib.mgpu_rt_intercept(b"mgpuNothing", ffi.NULL) == -1
    assert not lib.mgpu_rt_native(b"mgpuNothing")


@in_child(**alone)
def test_garbage_in_a_late_flag_is_no_error(mgpu: Mgpu) -> None:
    """LLVM before 18 passes no flag to mgpuMemAlloc."""
    old = mgpu.ffi.cast("void *(*)(uint64_t, hipStream_t, uint8_t)", mgpu.lib.mgpuMemAlloc)
    with mgpu_rt.intercept(PassAll()):
        stream = mgpu.StreamCreate()
        assert old(64, stream, 64)
    assert mgpu.stderr() == ""


BY_ITSELF = """
from mgpu_rt.runtime import Image, Runtime
runtime = Runtime()
print(runtime.stream_create(), runtime.mem_alloc(64, 0, False), Image(b"x" * 64).label)
print(runtime.module_get_function(0, "k"), runtime.stream_destroy(1))
"""


def test_a_method_outside_of_a_program_does_nothing() -> None:
    """The method does nothing. If a runtime belongs to no program, the first call of a method
    prints one line, and later calls print nothing."""
    code = [sys.executable, "-c", BY_ITSELF]
    done = run_process(code, environment())
    assert (done.returncode, done.stdout) == (0, "0 0 ('', '')\n0 None\n"), done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("mgpu_rt: a runtime's method was called while it is no program's")
