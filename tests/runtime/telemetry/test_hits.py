"""Hits are calls that a cache answered: refused, failed and foreign calls are not hits."""

from __future__ import annotations

from tests.support.child import Mgpu, in_child
from tests.support.folders import in_folder
from tests.support.images import code_object
from tests.support.recordings import results

TRACE = "trace.json"
COUNTED = {"policies": ("builtin",), "MGPU_RT_TRACE": TRACE}
FORUM = "test_func"


def hits_and_misses(mgpu: Mgpu, cache: str) -> tuple[int, int]:
    counts = mgpu.stats()["cache"][cache]
    return counts["hits"], counts["misses"]


@in_child(**COUNTED)
@in_folder
def test_a_look_up_in_an_unloaded_module_is_no_hit(mgpu: Mgpu) -> None:
    module = mgpu.load(mgpu.image(code_object("forum")))
    assert mgpu.function(module, FORUM)
    assert mgpu.function(module, FORUM)
    assert not mgpu.function(module, "nothing")
    mgpu.ModuleUnload(module)
    assert not mgpu.function(module, FORUM)
    assert hits_and_misses(mgpu, "functions") == (1, 1)
    assert results(TRACE, "mgpuModuleGetFunction") == ["miss", "hit", "failed", "refused"]


@in_child(**COUNTED)
@in_folder
def test_both_ways_to_load_count(mgpu: Mgpu) -> None:
    """HIP cannot compile an image, but mgpuModuleLoadJIT loads compiled images. A refused image is
    neither hit nor miss."""
    image, other = (mgpu.image(code_object(name)) for name in ("forum", "churn"))
    for _ in range(2):
        mgpu.ModuleUnload(mgpu.load(image))
    for _ in range(3):
        mgpu.ModuleUnload(mgpu.lib.mgpuModuleLoadJIT(other, 2, 0))
    assert not mgpu.lib.mgpuModuleLoadJIT(mgpu.image(b".version 7.0\n.target sm_90\n"), 2, 0)
    assert not mgpu.load(mgpu.image(code_object("forum")[:100], room=200))
    assert not mgpu.load(mgpu.image(b"no image"))
    assert hits_and_misses(mgpu, "modules") == (3, 2)
    assert results(TRACE, "mgpuModuleLoad") == ["miss", "hit", "failed", "failed"]
    assert results(TRACE, "mgpuModuleLoadJIT") == ["miss", "hit", "hit", "refused"]


@in_child(backends=("custub",), **COUNTED)
@in_folder
def test_compiled_text_counts_as_a_load(mgpu: Mgpu) -> None:
    head = b".version 7.0\n.target sm_90\n.address_size 64\n"
    text = mgpu.image(head + b".visible .entry k() {ret;}\n")
    for _ in range(3):
        mgpu.ModuleUnload(mgpu.lib.mgpuModuleLoadJIT(text, 2, 0))
    assert hits_and_misses(mgpu, "modules") == (2, 1)


@in_child(**COUNTED)
@in_folder
def test_a_failed_call_is_neither_hit_nor_miss(mgpu: Mgpu) -> None:
    """HIP has no memory left in this test."""
    stream = mgpu.StreamCreate()
    for _ in range(2):
        mgpu.MemFree(mgpu.MemAlloc(512, stream, False), stream)
    faults = [f"{name}:*:2" for name in ("hipMalloc", "hipStreamCreate")]
    mgpu.stub.hipstub_set_fault(",".join(faults).encode())
    for _ in range(2):
        mgpu.MemAlloc(512, stream, False)
    mgpu.StreamCreate()
    assert results(TRACE, "mgpuMemAlloc") == ["miss", "hit", "hit", "failed"]
    assert results(TRACE, "mgpuStreamCreate") == ["miss", "failed"]
    assert hits_and_misses(mgpu, "memory") == (2, 1)
    assert hits_and_misses(mgpu, "streams") == (0, 1)


@in_child(**COUNTED)
@in_folder
def test_calls_that_become_part_of_a_graph_are_hits_where_a_cache_serves_them(mgpu: Mgpu) -> None:
    """Memory that the graph has freed belongs to the graph, which uses it again."""
    image = mgpu.image(code_object("forum"))
    mgpu.ModuleUnload(mgpu.load(image))
    mgpu.StreamDestroy(mgpu.StreamCreate())
    assert mgpu.lib.mgpu_rt_graph_begin() == 0
    stream, module = mgpu.StreamCreate(), mgpu.load(image)
    for _ in range(2):
        mgpu.MemFree(mgpu.MemAlloc(100, stream, False), stream)
    mgpu.launch(mgpu.function(module, FORUM), stream)
    mgpu.ModuleUnload(module)
    mgpu.StreamDestroy(stream)
    mgpu.lib.mgpu_rt_graph_destroy(mgpu.lib.mgpu_rt_graph_end())
    assert results(TRACE, "mgpuStreamCreate") == results(TRACE, "mgpuModuleLoad") == ["miss", "hit"]
    assert results(TRACE, "mgpuModuleGetFunction") == ["miss"]
    assert results(TRACE, "mgpuMemAlloc") == ["miss", None]
    assert results(TRACE, "mgpuLaunchKernel") == [None]


@in_child(**COUNTED)
@in_folder
def test_a_call_that_the_user_answers_is_a_hit_only_if_a_cache_has_served_it(mgpu: Mgpu) -> None:
    ffi, lib = mgpu.ffi, mgpu.lib
    native = ffi.cast("hipStream_t (*)(void)", lib.mgpu_rt_native(b"mgpuStreamCreate"))
    allocate = ffi.cast(
        "void *(*)(uint64_t, hipStream_t, bool)", lib.mgpu_rt_native(b"mgpuMemAlloc")
    )

    @ffi.callback("hipStream_t (*)(void)")
    def passes_on():
        stream = native()
        allocate(100, stream, False)  # of the graph's own: no call of the program's
        return stream

    @ffi.callback("hipStream_t (*)(void)")
    def answers():
        return ffi.cast("hipStream_t", 0x10)

    for override in (passes_on, answers):
        assert lib.mgpu_rt_intercept(b"mgpuStreamCreate", ffi.cast("void (*)(void)", override)) == 0
        first = mgpu.StreamCreate()
        if override is passes_on:
            mgpu.StreamDestroy(first)
            mgpu.StreamDestroy(mgpu.StreamCreate())
    assert results(TRACE, "mgpuStreamCreate") == ["miss", "hit", None]
    assert hits_and_misses(mgpu, "streams") == (1, 1)
    assert hits_and_misses(mgpu, "memory") == (0, 2)  # the graph's own blocks
    assert mgpu.stats()["overridden"] == 1
