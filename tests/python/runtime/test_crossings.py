"""How often a program's calls enter Python: only where a method answers, or where Python does not
know a kernel yet."""

from __future__ import annotations

import os
import sys
from types import FrameType
from typing import Any

import pytest

import mgpu_rt
from bench.setup import native
from mgpu_rt._runtime import ffi, lib
from mgpu_rt.hooks import LaunchHook
from mgpu_rt.runtime import Launch, Runtime
from tests.support import instructions
from tests.support.child import Mgpu, in_child
from tests.support.images import code_object

alone = {"policies": ("builtin",)}
#: HIP gives the handle of an object that has ended to the next object.
reused = {**alone, "MGPU_RT_CACHE": "off", "HIPSTUB_REUSE": "1"}


class Launches(LaunchHook):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, bytes]] = []

    def on_launch(self, launch: Launch) -> None:
        image = launch.kernel.image
        self.seen.append((launch.kernel.name, image.content if image else b""))
        super().on_launch(launch)


class Empty(LaunchHook):
    def on_launch(self, launch: Launch) -> None:
        super().on_launch(launch)


class Calls:
    """Records the package's functions in Python that run, and the C functions that they call."""

    #: C functions that only a runtime calls.
    IN_C = frozenset(name for name in ("_make", *dir(lib)) if not name.startswith("mgpu"))

    def __init__(self) -> None:
        self.names: list[str] = []

    def __enter__(self) -> Calls:
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, argument: Any) -> None:
        of_runtime = frame.f_globals["__name__"].startswith(("mgpu_rt.runtime", "mgpu_rt.hooks"))
        if event == "call" and (of_runtime or frame.f_code is Empty.on_launch.__code__):
            self.names.append(frame.f_code.co_name)
        elif event == "c_call" and of_runtime and argument.__name__ in self.IN_C:
            self.names.append(f"C {argument.__name__}")


def launch_once(mgpu: Mgpu, image: Any, name: str = "test_func") -> None:
    """Makes the seven calls of a launch in a program of LLVM 19."""
    module = mgpu.load(image)
    function = mgpu.function(module, name)
    stream = mgpu.StreamCreate()
    mgpu.launch(function, stream)
    mgpu.StreamSynchronize(stream)
    mgpu.StreamDestroy(stream)
    mgpu.ModuleUnload(module)


@in_child(**alone)
def test_a_launch_enters_python_once(mgpu: Mgpu) -> None:
    """A call of mgpuLaunchKernel runs one method of each class. The last method calls C to make the
    launch. The other six calls run no Python."""
    image = mgpu.image(code_object("forum"))
    with mgpu_rt.intercept(Empty()):
        launch_once(mgpu, image)
        with Calls() as calls:
            for _ in range(5):
                launch_once(mgpu, image)
    methods = ["launch_kernel", "on_launch", "on_launch", "launch_kernel"]
    assert calls.names == 5 * ["launch", *methods, "C _make"]


@in_child(**alone)
def test_a_launch_outlives_its_call(mgpu: Mgpu) -> None:
    kept = []

    class Keeps(Runtime):
        def launch_kernel(self, launch: Launch) -> None:
            kept.append(launch)

    streams = [mgpu.StreamCreate() for _ in range(3)]
    with mgpu_rt.intercept(Keeps()):
        for stream in streams:
            mgpu.launch(mgpu.ffi.NULL, stream)
    numbers = [int(mgpu.ffi.cast("uintptr_t", stream)) for stream in streams]
    assert [launch.stream for launch in kept] == numbers


@pytest.mark.nightly
@pytest.mark.skipif(not instructions.available(), reason="valgrind is missing")
def test_a_call_of_a_hook_is_prepared_for_no_record() -> None:
    """Without statistics the library copies nothing of a call that a method answers. The bound is
    10 % above the library's own instructions for seven calls."""
    variables = {
        "MGPU_RT_RUNTIME": "bench.runtimes:Observe",
        "MGPU_RT_MANAGER": sys.executable,
        "PYTHONPATH": os.fspath(native.ROOT),
    }
    profile = instructions.count(7, iterations=100, variables=variables)
    assert 500 < profile.per_iteration(native.RUNTIME.name) <= 1410


@in_child(**alone)
def test_a_new_kernel_enters_python_once_more(mgpu: Mgpu) -> None:
    """Python learns of a module and of a function once. A copy of the image lies elsewhere."""
    content = code_object("forum")
    images = mgpu.image(content), mgpu.image(content)
    with mgpu_rt.intercept(Empty()), Calls() as calls:
        for image in (*images, *images):
            mgpu.function(mgpu.load(image), "test_func")
    assert calls.names.count("_loaded") == calls.names.count("_found") == 4  # all are held
    with mgpu_rt.intercept(Empty()), Calls() as calls:
        for image in (*images, *images):
            launch_once(mgpu, image)
    assert calls.names.count("_loaded") == calls.names.count("_found") == 1


# ---- what is known of a handle holds no longer ----


@in_child(**reused)
def test_a_handle_of_another_image_is_another_kernel(mgpu: Mgpu) -> None:
    """HIP gives the handles of a module that was unloaded to the next module. Both modules have a
    kernel of one name."""
    contents = [code_object("samename", module) for module in ("first", "second")]
    place = mgpu.image(contents[0], room=max(map(len, contents)))
    with mgpu_rt.intercept(Launches()) as runtime:
        for content in (*contents, *contents):
            mgpu.ffi.memmove(place, content, len(content))
            launch_once(mgpu, place, "mark")
    assert len({*runtime.seen}) == 2
    assert runtime.seen == [("mark", content) for content in (*contents, *contents)]


@in_child(**reused)
def test_a_handle_of_another_function_is_another_kernel(mgpu: Mgpu) -> None:
    image = mgpu.image(code_object("many", "part0"))
    with mgpu_rt.intercept(Launches()) as runtime:
        for name in ("kernel00", "kernel01", "kernel00"):
            launch_once(mgpu, image, name)
    assert [name for name, _ in runtime.seen] == ["kernel00", "kernel01", "kernel00"]


@in_child(**alone)
def test_each_runtime_learns_of_the_kernels(mgpu: Mgpu) -> None:
    content = code_object("forum")
    image = mgpu.image(content)
    with mgpu_rt.intercept(Launches()) as outer:
        launch_once(mgpu, image)
        with mgpu_rt.intercept(Launches()) as inner:
            launch_once(mgpu, image)
        launch_once(mgpu, image)
    assert inner.seen == [("test_func", content)]
    assert outer.seen == 2 * inner.seen


@in_child(**alone)
def test_a_kernel_is_told_from_others_of_its_hash(mgpu: Mgpu) -> None:
    """C keeps what was last known for each hash of a handle. Here other handles fill the tables,
    which differ from the program's handles in nothing else."""
    content = code_object("forum")
    image, name = mgpu.image(content), b"test_func"
    with mgpu_rt.intercept(Launches()) as runtime:
        who = lib.new_knower()
        for handle in range(16, 16 * 20000, 16):
            lib.know(who, handle, handle, content, len(content), ffi.NULL)
        module = mgpu.load(image)
        number = int(mgpu.ffi.cast("uintptr_t", module))
        lib.know(who, number, number, content, len(content), ffi.NULL)
        for handle in range(16, 16 * 20000, 16):
            lib.know(who, handle, number, content, len(content), name)
        mgpu.launch(mgpu.function(module, "test_func"))
    assert runtime.seen == [("test_func", content)]
