"""CachedRuntime and Singleton reuse only objects that their checks allow.

tests/proofs/mutants removes one check at a time. For each removed check, proofs.md names the
tests that then fail.
"""

from __future__ import annotations

import threading

import pytest

import mgpu_rt
from mgpu_rt.runtime import CachedRuntime, PlainRuntime, Singleton
from tests.proofs.programs import groups, images
from tests.proofs.random import runner
from tests.support.child import Mgpu, in_child
from tests.support.images import code_object, exports_a_constant
from tests.support.suites import in_check

alone = {"policies": ("builtin",)}

# ---- the programs of the C library's proofs ----

NAMES = ("streams", "streams-others", "memory", "memory-others", "devices")
GROUPS = {group.name: group for group in groups() if group.name in NAMES}
(CACHED,) = (side for side in runner.IN_PYTHON if side.name == "CachedRuntime")


@pytest.mark.parametrize("name", in_check(NAMES, lambda name: name != "streams"))
def test_a_program_of_the_proofs_is_right(name: str) -> None:
    """The programs name their results. The selftest plays them with the C library."""
    images.write("gfx90a")
    case = GROUPS[name].case()
    device = runner.SOFTGPU_TWO if case.devices > 1 else runner.SOFTGPU
    assert runner.differences(runner.play(case, CACHED, device), case, None) == []


# ---- modules ----


@in_child(**alone)
def test_an_image_is_loaded_once(mgpu: Mgpu) -> None:
    """An image's bytes identify the image and its functions, at any address."""
    content = code_object("forum")
    with mgpu_rt.intercept(CachedRuntime()):
        for image in (mgpu.image(content), mgpu.image(content)):
            module = mgpu.load(image)
            mgpu.function(module, "test_func")
            mgpu.ModuleUnload(module)
        assert mgpu.count("hipModuleLoadData") == 1
        assert mgpu.count("hipModuleGetFunction") == 1


@in_child(**alone)
def test_a_module_has_one_holder(mgpu: Mgpu) -> None:
    image = mgpu.image(code_object("forum"))
    with mgpu_rt.intercept(CachedRuntime()):
        assert mgpu.load(image) != mgpu.load(image)


@in_child(**alone)
def test_an_image_that_kernels_or_the_program_can_write_is_loaded_anew(mgpu: Mgpu) -> None:
    with mgpu_rt.intercept(CachedRuntime()):
        for image in map(mgpu.image, (code_object("globals"), exports_a_constant())):
            before = mgpu.count("hipModuleLoadData")
            for _ in range(2):
                mgpu.ModuleUnload(mgpu.load(image))
            assert mgpu.count("hipModuleLoadData") == before + 2
        assert mgpu.count("hipModuleUnload") == 4


@in_child(HIPSTUB_REUSE="1", **alone)
def test_functions_of_a_module_that_hip_has_back_are_forgotten(mgpu: Mgpu) -> None:
    image = mgpu.image(code_object("forum"))
    with mgpu_rt.intercept(CachedRuntime()) as runtime:
        module = mgpu.load(image)
        mgpu.function(module, "test_func")
        mgpu.ModuleUnload(module)
        assert runtime.give_back() == 1
        mgpu.stub.hipstub_reset()
        mgpu.function(mgpu.load(image), "test_func")
        assert mgpu.count("hipModuleGetFunction") == 1


@in_child(HIPSTUB_REUSE="1", **alone)
def test_a_handle_that_hip_hands_out_anew_is_unknown(mgpu: Mgpu) -> None:
    """The program has unloaded the runtime's module by calling HIP. The next load gets the handle
    of the unloaded module. After the first reload, the handle belongs to a module of the same
    image, but the image's functions have new handles. After the second reload, the handle belongs
    to a module of another image. Kernels write to this image's globals, so the runtime must not
    share the module."""
    first, second = (mgpu.image(code_object(name)) for name in ("forum", "globals"))
    with mgpu_rt.intercept(CachedRuntime()):
        module = mgpu.load(first)
        for image in (first, second):
            mgpu.function(module, "test_func")
            mgpu.stub.hipModuleUnload(mgpu.for_stub(module))
            assert mgpu.load(image) == module
        assert mgpu.count("hipModuleGetFunction") == 2
        mgpu.ModuleUnload(module)
        assert mgpu.count("hipModuleUnload") == 3
        assert mgpu.stderr() == ""


# ---- streams ----


def _on_device_1(mgpu: Mgpu, stream) -> None:
    """The program destroys the runtime's stream by calling HIP, and makes a stream of device 1 with
    the same handle."""
    mgpu.stub.hipStreamDestroy(mgpu.for_stub(stream))
    mgpu.SetDefaultDevice(1)
    other = mgpu.stub_ffi.new("void **")
    mgpu.stub.hipStreamCreate(other)
    assert mgpu.from_stub(other[0]) == stream


@in_child(HIPSTUB_REUSE="1", HIPSTUB_DEVICES="2", **alone)
def test_a_stream_of_another_device_is_not_kept(mgpu: Mgpu) -> None:
    with mgpu_rt.intercept(CachedRuntime()):
        stream = mgpu.StreamCreate()
        _on_device_1(mgpu, stream)
        mgpu.StreamDestroy(stream)
        assert mgpu.count("hipStreamDestroy") == 2
        assert mgpu.stderr() == ""


@in_child(**alone)
def test_a_singleton_serves_all(mgpu: Mgpu) -> None:
    with mgpu_rt.intercept(Singleton()):
        stream = mgpu.StreamCreate()
        assert mgpu.StreamCreate() == stream
        mgpu.StreamDestroy(stream)
        assert mgpu.StreamCreate() == stream
        assert mgpu.counts("hipStreamCreate", "hipStreamDestroy") == {
            "hipStreamCreate": 1,
            "hipStreamDestroy": 0,
        }


@in_child(**alone)
def test_a_singleton_makes_one_stream_for_threads_that_begin_at_once(mgpu: Mgpu) -> None:
    """An earlier version created one runtime in each thread. All threads except one then released
    their runtimes while other threads still used these runtimes."""
    mgpu.stub.hipstub_set_delay(b"hipStreamCreate:20000")
    with mgpu_rt.intercept(Singleton()):
        threads = [threading.Thread(target=mgpu.StreamCreate) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert mgpu.count("hipStreamCreate") == 1


@in_child(**alone)
def test_a_singleton_that_hip_destroyed_is_made_anew(mgpu: Mgpu) -> None:
    with mgpu_rt.intercept(Singleton()):
        stream = mgpu.StreamCreate()
        mgpu.stub.hipStreamDestroy(mgpu.for_stub(stream))
        assert mgpu.StreamCreate() != stream


@in_child(**alone)
def test_a_stream_is_no_module(mgpu: Mgpu) -> None:
    """HIP judges a stream that the program passes as a module."""
    with mgpu_rt.intercept(CachedRuntime()):
        mgpu.ModuleUnload(mgpu.ffi.cast("hipModule_t", mgpu.StreamCreate()))
        assert mgpu.count("hipModuleUnload") == 1


# ---- memory ----


@in_child(**alone)
def test_a_block_serves_its_stream_and_size_again(mgpu: Mgpu) -> None:
    with mgpu_rt.intercept(CachedRuntime()):
        stream, other = mgpu.StreamCreate(), mgpu.StreamCreate()
        block = mgpu.MemAlloc(64, stream, False)
        freed = mgpu.count("hipFree")
        mgpu.MemFree(block, stream)
        assert mgpu.MemAlloc(64, other, False) != block
        assert mgpu.MemAlloc(128, stream, False) != block
        assert mgpu.MemAlloc(64, stream, False) == block
        assert mgpu.count("hipFree") == freed


@in_child(HIPSTUB_ASYNC="held", HIPSTUB_REUSE="1", HIPSTUB_DEVICES="2", **alone)
def test_a_free_waits_for_a_stream_that_hip_has_made_on_another_device(mgpu: Mgpu) -> None:
    with mgpu_rt.intercept(CachedRuntime()):
        moved = mgpu.StreamCreate()
        _on_device_1(mgpu, moved)
        stream = mgpu.StreamCreate()
        block = mgpu.MemAlloc(64, stream, False)
        mgpu.Memset32(block, 1, 16, moved)
        mgpu.MemFree(block, stream)
        assert mgpu.pending(moved) == 0


@in_child(HIPSTUB_ASYNC="held", HIPSTUB_DEVICES="2", **alone)
def test_a_free_waits_for_the_null_stream_of_the_block(mgpu: Mgpu) -> None:
    """The null stream of any device may use the block. The runtime does not ask HIP about it."""
    with mgpu_rt.intercept(CachedRuntime()):
        stream = mgpu.StreamCreate()
        block = mgpu.MemAlloc(64, stream, False)
        mgpu.Memset32(block, 1, 16, mgpu.null)
        mgpu.SetDefaultDevice(1)
        freed = mgpu.count("hipFree")
        mgpu.MemFree(block, stream)
        assert mgpu.count("hipFree") == freed + 1
        assert mgpu.count("hipStreamQuery") == 0


@in_child(**alone)
def test_memory_that_hip_handed_out_anew_is_not_kept(mgpu: Mgpu) -> None:
    """The program has freed the block by calling hipFree, and HIP has allocated other memory at the
    block's address. The new memory has a new buffer number."""
    with mgpu_rt.intercept(CachedRuntime()) as runtime:
        stream = mgpu.StreamCreate()
        block = mgpu.MemAlloc(64, stream, False)
        address, freed = int(mgpu.ffi.cast("uintptr_t", block)), mgpu.count("hipFree")
        number = runtime.hip.buffer_id
        runtime.hip.buffer_id = lambda at: number(at) + (at == address)
        mgpu.MemFree(block, stream)
        assert mgpu.count("hipFree") == freed + 1


@in_child(HIPSTUB_MEMORY=str(1 << 20), **alone)
def test_kept_blocks_go_back_where_memory_is_short(mgpu: Mgpu) -> None:
    with mgpu_rt.intercept(CachedRuntime()):
        stream = mgpu.StreamCreate()
        for size in (700_000, 600_000, 500_000):
            block = mgpu.MemAlloc(size, stream, False)
            assert block
            mgpu.MemFree(block, stream)
    assert mgpu.stderr() == ""


# ---- all kinds of objects ----


@in_child(**alone)
def test_a_handle_given_up_twice_serves_one_owner(mgpu: Mgpu) -> None:
    """The runtime refuses the second release of an object, and prints stock's message."""
    image = mgpu.image(code_object("forum"))

    def streams() -> tuple:
        return mgpu.StreamCreate, mgpu.StreamDestroy, "hipStreamDestroy(stream)"

    def modules() -> tuple:
        return lambda: mgpu.load(image), mgpu.ModuleUnload, "hipModuleUnload(module)"

    def blocks() -> tuple:
        stream = mgpu.StreamCreate()
        get = lambda: mgpu.MemAlloc(64, stream, False)  # noqa: E731
        return get, lambda block: mgpu.MemFree(block, stream), "hipFree(ptr)"

    for kind in (streams, modules, blocks):
        with mgpu_rt.intercept(CachedRuntime()):
            get, give, words = kind()
            thing = get()
            give(thing)
            assert mgpu.stderr() == ""
            give(thing)
            assert f"'{words}' failed with 'hipError" in mgpu.stderr()
            assert get() != get()


@in_child(**alone)
def test_handles_from_before_a_reset_are_forgotten(mgpu: Mgpu) -> None:
    image = mgpu.image(code_object("forum"))
    for kind in (CachedRuntime, Singleton):
        with mgpu_rt.intercept(kind()):
            for _ in range(2):
                stream, module = mgpu.StreamCreate(), mgpu.load(image)
                block = mgpu.MemAlloc(64, stream, False)
                mgpu.MemFree(block, stream)
                mgpu.ModuleUnload(module)
                mgpu.StreamDestroy(stream)
                mgpu.stub.hipDeviceReset()
            assert mgpu.stderr() == ""


@in_child(**alone)
def test_threads_share_one_runtime(mgpu: Mgpu) -> None:
    """Four threads need at most four streams, and no stream belongs to two threads at once. While
    HIP answers a query, other threads run."""
    held: set[int] = set()
    twice: list[int] = []
    mgpu.stub.hipstub_set_delay(b"hipStreamQuery:200")

    def use() -> None:
        for _ in range(50):
            stream = int(mgpu.ffi.cast("uintptr_t", mgpu.StreamCreate()))
            if stream in held:
                twice.append(stream)
            held.add(stream)
            held.discard(stream)
            mgpu.StreamDestroy(mgpu.ffi.cast("hipStream_t", stream))

    with mgpu_rt.intercept(CachedRuntime()):
        threads = [threading.Thread(target=use) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not twice
    assert mgpu.count("hipStreamCreate") <= 4


@in_child(**alone)
def test_runtimes_in_python_refuse_the_time_between_events(mgpu: Mgpu) -> None:
    for runtime in (PlainRuntime(), CachedRuntime()):
        with mgpu_rt.intercept(runtime):
            start, stop = mgpu.EventCreate(), mgpu.EventCreate()
            assert mgpu.EventElapsedTime(start, stop, mgpu.null).error == 400
            mgpu.EventDestroy(start)
            mgpu.EventDestroy(stop)
    assert mgpu.stub.hipstub_live(b"events") == mgpu.stub.hipstub_misuse() == 0
    assert mgpu.stderr().count("hipEventElapsedTime(&milliseconds, start, stop)") == 2
