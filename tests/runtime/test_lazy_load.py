"""MGPU_RT_LOAD=lazy: a constant image is loaded when the first of its kernels is asked for."""

from __future__ import annotations

import threading

from tests.support.child import Mgpu, in_child
from tests.support.constants import constants
from tests.support.images import code_object
from tests.support.patience import HANG

LAZY = {"MGPU_RT_LOAD": "lazy"}
LOAD, UNLOAD = "hipModuleLoadData", "hipModuleUnload"
PROGRAMS = ("forum", "globals", "vecadd")
FORUM_KERNEL = "test_func"


def all_images(mgpu: Mgpu) -> dict[str, object]:
    return constants(mgpu, {program: code_object(program) for program in PROGRAMS})


@in_child(**LAZY)
def test_an_image_that_is_never_asked_for_is_never_loaded(mgpu: Mgpu) -> None:
    image = all_images(mgpu)
    modules = [mgpu.load(image[program]) for program in PROGRAMS]
    assert len({*modules, mgpu.null}) == 4
    assert mgpu.count(LOAD) == 0
    function = mgpu.function(modules[0], FORUM_KERNEL)
    assert function
    assert mgpu.function(modules[0], FORUM_KERNEL) == function
    mgpu.launch(function)
    for module in modules:
        mgpu.ModuleUnload(module)
    assert mgpu.counts(LOAD, UNLOAD) == {LOAD: 1, UNLOAD: 0}
    assert mgpu.stderr() == ""


@in_child()
def test_without_the_option_each_image_is_loaded_at_once(mgpu: Mgpu) -> None:
    for program, image in all_images(mgpu).items():
        assert mgpu.load(image), program
    assert mgpu.count(LOAD) == len(PROGRAMS)


@in_child(**LAZY)
def test_an_image_that_may_change_is_loaded_at_once(mgpu: Mgpu) -> None:
    """By the time its kernel is asked for, something else may lie there."""
    buffer = mgpu.image(code_object("forum"))
    module = mgpu.load(buffer)
    assert mgpu.count(LOAD) == 1
    mgpu.ffi.memmove(buffer, bytes(64), 64)
    assert mgpu.function(module, FORUM_KERNEL)


@in_child(**LAZY)
def test_a_loop_of_loads_has_hip_load_once(mgpu: Mgpu) -> None:
    """LLVM 20 and older lower to such a loop."""
    image = all_images(mgpu)["forum"]
    for _ in range(10):
        module = mgpu.load(image)
        assert mgpu.function(module, FORUM_KERNEL)
        mgpu.ModuleUnload(module)
    assert mgpu.counts(LOAD, UNLOAD) == {LOAD: 1, UNLOAD: 0}


@in_child(**LAZY)
def test_two_loads_of_an_image_are_two_modules(mgpu: Mgpu) -> None:
    """Each has globals of its own, and goes when it is unloaded."""
    image = all_images(mgpu)["globals"]
    first, second = mgpu.load(image), mgpu.load(image)
    assert first != second
    assert mgpu.function(first, "count") != mgpu.function(second, "count")
    mgpu.ModuleUnload(first)
    assert mgpu.counts(LOAD, UNLOAD) == {LOAD: 2, UNLOAD: 1}
    assert mgpu.function(second, "count")
    mgpu.ModuleUnload(second)
    assert mgpu.count(UNLOAD) == 2
    assert mgpu.stderr() == ""


@in_child(**LAZY, HIPSTUB_DEVICES="2")
def test_a_deferred_image_is_loaded_on_the_device_of_its_load(mgpu: Mgpu) -> None:
    image = all_images(mgpu)
    module = mgpu.load(image["forum"])
    mgpu.SetDefaultDevice(1)
    before = mgpu.StreamCreate()
    mgpu.StreamDestroy(before)
    assert mgpu.function(module, FORUM_KERNEL)
    mgpu.ModuleUnload(module)
    assert mgpu.StreamCreate() == before  # the thread's device is what it was
    mgpu.load(image["forum"])  # on device 1 there is none yet
    assert mgpu.count(LOAD) == 2
    mgpu.SetDefaultDevice(0)
    assert mgpu.load(image["forum"]) != module
    assert mgpu.count(LOAD) == 2


@in_child(**LAZY)
def test_an_error_shows_when_the_kernel_is_asked_for(mgpu: Mgpu) -> None:
    mgpu.StreamDestroy(mgpu.StreamCreate())
    image = all_images(mgpu)["forum"]
    mgpu.stub.hipstub_set_fault(f"{LOAD}:*:209".encode())
    module = mgpu.load(image)
    assert module and mgpu.stderr() == ""
    assert not mgpu.function(module, FORUM_KERNEL)
    said = mgpu.stderr()
    assert said.startswith("'hipModuleLoadData(&module, data)' failed with 'hipErrorNoBinaryFor")
    assert f"image {hex(int(mgpu.ffi.cast('uintptr_t', image)))} failed to load" in said
    assert f"first looked up kernel '{FORUM_KERNEL}'" in said
    assert not mgpu.function(module, FORUM_KERNEL)
    assert "'hipModuleGetFunction(&function, module, name)' failed" in mgpu.stderr()
    mgpu.ModuleUnload(module)
    assert "'hipModuleUnload(module)' failed with" in mgpu.stderr()


@in_child(**LAZY)
def test_use_after_unload_is_reported(mgpu: Mgpu) -> None:
    image = all_images(mgpu)
    for program in ("forum", "vecadd"):
        module = mgpu.load(image[program])
        if program == "forum":
            assert mgpu.function(module, FORUM_KERNEL)
        mgpu.ModuleUnload(module)
        mgpu.ModuleUnload(module)
        assert mgpu.stderr().startswith("'hipModuleUnload(module)' failed with 'hipError")
        asked = mgpu.count("hipModuleGetFunction")
        assert not mgpu.function(module, "other")
        assert "'hipModuleGetFunction(&function, module, name)' failed" in mgpu.stderr()
        assert mgpu.count("hipModuleGetFunction") == asked
        address, size = mgpu.ffi.new("void **"), mgpu.ffi.new("size_t *")
        mgpu.ModuleGetGlobal(address, size, module, mgpu.name("launches"))
        assert "'hipModuleGetGlobal(devPtr, bytes, module, name)' failed" in mgpu.stderr()
        assert mgpu.count("hipModuleGetGlobal") == 0


@in_child(**LAZY)
def test_concurrent_first_requests_load_one_module(mgpu: Mgpu) -> None:
    module = mgpu.load(all_images(mgpu)["globals"])
    mgpu.stub.hipstub_set_meeting(LOAD.encode(), 2)
    name, found = mgpu.name("count"), []

    def ask() -> None:
        found.append(mgpu.ModuleGetFunction(module, name))

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG)
    assert len(found) == 2 and found[0] == found[1] != mgpu.null
    assert mgpu.counts(LOAD, UNLOAD) == {LOAD: 2, UNLOAD: 1}
    mgpu.ModuleUnload(module)
    assert mgpu.count(UNLOAD) == 2


@in_child(**LAZY, MGPU_RT_CACHE="off")
def test_the_cache_off_loads_at_once(mgpu: Mgpu) -> None:
    mgpu.load(all_images(mgpu)["forum"])
    assert mgpu.count(LOAD) == 1


@in_child(**LAZY, policies=("builtin",), MGPU_RT_STATS="/dev/null")
def test_the_image_is_counted_by_both_its_handles(mgpu: Mgpu) -> None:
    """The entry's, and HIP's for the loads that follow."""
    image = constants(mgpu, {"many": code_object("many", "part0")})["many"]
    kernels = ["kernel00", "kernel01"]
    for kernel in kernels:
        module = mgpu.load(image)
        mgpu.function(module, kernel)
        mgpu.ModuleUnload(module)
    (counted,) = mgpu.stats()["modules"]
    assert (counted["loads"], counted["driver_loads"]) == (2, 1)
    assert sorted(counted["kernels"]) == kernels
    assert mgpu.stats()["cache"]["modules"] == {"hits": 1, "misses": 1, "evictions": 0}


@in_child(**LAZY, policies=("builtin",), MGPU_RT_STATS="/dev/null")
def test_a_deferred_load_is_a_hit_if_the_cache_has_the_image_by_then(mgpu: Mgpu) -> None:
    content = code_object("many", "part0")
    for image in constants(mgpu, {"one": content, "other": content}).values():
        module = mgpu.load(image)
        assert mgpu.stats()["cache"]["modules"]["hits"] == 0
        mgpu.function(module, "kernel00")
        mgpu.ModuleUnload(module)
    assert mgpu.stats()["cache"]["modules"] == {"hits": 1, "misses": 1, "evictions": 0}
