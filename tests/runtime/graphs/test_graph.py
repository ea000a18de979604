"""Graphs that the library builds: the order of their nodes, and the calls that end the building."""

from __future__ import annotations

import mmap
import os
import threading
from collections.abc import Callable
from typing import Any

from tests.support.child import BACKENDS_WITH_GPU, Mgpu, in_cases, in_child
from tests.support.graphs import KIB, built, first, replay
from tests.support.images import code_object
from tests.support.known import KERNEL, forum
from tests.support.patience import HANG, wait_for_end


@in_cases(("forum", "globals"))
def test_a_module_of_a_graph_stays_loaded(mgpu: Mgpu, program: str) -> None:
    """The program loads the module before it builds the graphs, and unloads it afterwards."""
    stream = mgpu.StreamCreate()
    module = mgpu.load(mgpu.image(code_object(program)))
    kernel = {"forum": KERNEL, "globals": "count"}[program]
    function = mgpu.function(module, kernel)
    with built(mgpu) as graph:
        mgpu.launch(function, stream)
    with built(mgpu) as second:
        mgpu.launch(function, stream)
    mgpu.ModuleUnload(module)
    mgpu.lib.mgpu_rt_empty_cache()
    mgpu.lib.mgpu_rt_graph_destroy(second[0])
    replay(mgpu, graph[0], stream)
    assert mgpu.count("hipModuleUnload") == mgpu.stub.hipstub_misuse() == 0
    mgpu.lib.mgpu_rt_graph_destroy(graph[0])
    if program == "forum":  # the module has stayed in the cache
        mgpu.lib.mgpu_rt_empty_cache()
    assert mgpu.count("hipModuleUnload") == 1
    assert mgpu.stub.hipstub_misuse() == 0
    assert mgpu.stderr() == ""


@in_cases({"5.2": {}, "6.3": {"HIPSTUB_VERSION": "60342134"}})
def test_old_releases_report_a_launch_beside_other_threads(mgpu: Mgpu, release: str) -> None:
    """HIP before 6.3 may give two threads each other's arguments of a kernel."""
    calls, ends = threading.Event(), threading.Event()

    def stay() -> None:
        mgpu.StreamDestroy(mgpu.StreamCreate())
        calls.set()
        ends.wait(HANG)

    stream = mgpu.StreamCreate()
    with built(mgpu) as graph:
        mgpu.Memset32(mgpu.MemAlloc(KIB, stream, False), 1, 1, stream)
    replay(mgpu, graph[0], stream)
    assert mgpu.stderr() == ""
    other = threading.Thread(target=stay)
    other.start()
    assert calls.wait(HANG)
    for _ in range(2):
        replay(mgpu, graph[0], stream)
    ends.set()
    other.join()
    said = mgpu.stderr()
    assert said.count("other threads make calls") == (1 if release == "5.2" else 0), said


# ---- what cannot be in a graph -------------------------------------------------------------------


def refused(mgpu: Mgpu, call, words: str) -> None:
    """Checks that the call ends the building of the graph, and that the library prints one line.
    None of the work has run, and no graph is leaked."""
    block = mgpu.MemAlloc(KIB, mgpu.null, False)
    live, instantiated = mgpu.stub.hipstub_live(b"graphs"), mgpu.count("hipGraphInstantiate")
    stream = mgpu.StreamCreate()
    with built(mgpu) as graph:
        mgpu.Memset32(block, 1, 1, stream)
        call(stream)
        mgpu.Memset32(block, 2, 1, stream)
        mgpu.MemFree(mgpu.MemAlloc(KIB, stream, False), stream)
    assert graph == [None]
    said = mgpu.stderr().splitlines()
    assert len([line for line in said if "the graph is not built" in line]) == 1, said
    assert words in said[-1], said
    assert mgpu.stub.hipstub_live(b"graphs") == live
    assert mgpu.count("hipGraphInstantiate") == instantiated
    assert mgpu.counts("hipMemsetD32Async", "hipHostRegister") == {
        "hipMemsetD32Async": 0,
        "hipHostRegister": 0,
    }
    mgpu.Memset32(block, 3, 1, stream)
    mgpu.StreamSynchronize(stream)
    assert first(mgpu, block) == 3


class Before:
    """Objects that the program has before it builds the graph."""

    def __init__(self, mgpu: Mgpu) -> None:
        self.host = mgpu.ffi.new("char[4096]")
        self.block = mgpu.MemAlloc(KIB, mgpu.null, False)
        self.event = mgpu.EventCreate()
        self.function = forum(mgpu)
        self.image = mgpu.image(code_object("globals"))
        self.scratch = mgpu.ffi.new("struct mgpu_rt_scratch *")
        mgpu.lib.mgpu_rt_scratch_reserve(self.scratch, KIB)
        if os.environ["MGPU_RT_TEST_CASE"] == "launch":
            with built(mgpu) as self.graph:
                mgpu.MemFree(mgpu.MemAlloc(KIB, mgpu.null, False), mgpu.null)


def free_twice(mgpu: Mgpu, stream) -> None:
    block = mgpu.MemAlloc(2 * KIB, stream, False)
    mgpu.MemFree(block, stream)
    mgpu.MemFree(block, stream)


def allocate(mgpu: Mgpu, stream) -> None:
    assert mgpu.MemAlloc(0, stream, False) == mgpu.null
    assert mgpu.MemAlloc(KIB, stream, False) == mgpu.null


#: Calls that end the building of a graph, by the mgpu, a stream and the objects of before; a part
#: of the line; and variables. Without the graph, each run of the program would load fresh globals.
#: After the program has freed memory that is not cached, HIP would give it to another owner.
REFUSED: dict[str, tuple[Callable[[Mgpu, Any, Before], object], str, dict[str, str]]] = {
    "register": (lambda m, s, b: m.MemHostRegister(b.host, 4096), "mgpuMemHostRegister cannot", {}),
    "shared": (lambda m, s, b: m.MemAlloc(KIB, m.null, True), "the host shares", {}),
    "earlier-block": (lambda m, s, b: m.MemFree(b.block, s), "has not allocated", {}),
    "second-free": (lambda m, s, b: free_twice(m, s), "has not allocated", {}),
    "earlier-event": (lambda m, s, b: m.StreamWaitEvent(s, b.event), "created before", {}),
    "foreign-event": (
        lambda m, s, b: m.EventRecord(m.ffi.cast("hipEvent_t", m.by_hip("hipEventCreate")), s),
        "no event of mgpuEventCreate", {},
    ),
    "globals": (lambda m, s, b: m.ModuleUnload(m.load(b.image)), "writable globals", {}),
    "failure": (lambda m, s, b: m.Memset32(b.host, 1, 4, s), "the call above failed", {}),
    "large-block": (
        lambda m, s, b: m.launch(b.function, s, block=(2048, 1, 1)), "which no GPU runs", {}
    ),
    "foreign-function": (
        lambda m, s, b: m.launch(m.ffi.cast("hipFunction_t", 0x1000), s),
        "no function of a cached module", {},
    ),
    "graph": (lambda m, s, b: m.lib.mgpu_rt_graph_begin(), "begins another graph", {}),
    "launch": (
        lambda m, s, b: m.lib.mgpu_rt_graph_launch(b.graph[0], s), "launches another graph", {}
    ),
    "scratch": (
        lambda m, s, b: m.lib.mgpu_rt_scratch_reserve(b.scratch, 9 * KIB), "scratch", {}
    ),
    "device": (
        lambda m, s, b: m.SetDefaultDevice(1), "switches to device 1", {"HIPSTUB_DEVICES": "2"}
    ),
    "no-memory-cache": (
        lambda m, s, b: allocate(m, s),
        "it allocates 1024 bytes, which MGPU_RT_CACHE=modules,functions leaves",
        {"MGPU_RT_CACHE": "modules,functions"},
    ),
    "no-module-cache": (
        lambda m, s, b: m.launch(b.function, s), "whose module MGPU_RT_CACHE=streams,memory",
        {"MGPU_RT_CACHE": "streams,memory"},
    ),
}  # fmt: skip


@in_cases({case: env for case, (_, _, env) in REFUSED.items()})
def test_a_call_that_cannot_be_in_a_graph_ends_the_building(mgpu: Mgpu, case: str) -> None:
    call, words, _ = REFUSED[case]
    before = Before(mgpu)
    refused(mgpu, lambda stream: call(mgpu, stream, before), words)


@in_child(HIPSTUB_REUSE="1")
def test_a_block_of_another_thread_at_a_lost_address_is_not_the_graphs(mgpu: Mgpu) -> None:
    """The program frees the graph's block by calling HIP. HIP then gives the address to another
    thread."""
    stream, made = mgpu.StreamCreate(), []
    with built(mgpu) as graph:
        block = mgpu.MemAlloc(64 * KIB, stream, False)
        assert mgpu.stub.hipFree(mgpu.for_stub(block)) == 0
        thread = threading.Thread(
            target=lambda: made.append(mgpu.MemAlloc(64 * KIB, mgpu.null, False))
        )
        thread.start()
        assert wait_for_end(thread)
        assert made == [block]
        mgpu.MemFree(block, stream)
    assert graph == [None]
    assert "has not allocated" in mgpu.stderr()


@in_child()
def test_the_end_of_its_thread_ends_the_building(mgpu: Mgpu) -> None:
    """HIP destroys the graph, and the next graph is built as if the first graph had never
    existed."""

    def build() -> None:
        assert mgpu.lib.mgpu_rt_graph_begin() == 0
        mgpu.MemAlloc(KIB, mgpu.StreamCreate(), False)

    for _ in range(2):
        thread = threading.Thread(target=build)
        thread.start()
        assert wait_for_end(thread)
    assert mgpu.stub.hipstub_live(b"graphs") == 0
    assert mgpu.stderr() == "mgpu_rt: the graph is not built: the thread that builds it ends\n" * 2
    with built(mgpu) as graph:
        pass
    assert graph[0] is not None


@in_child(backends=BACKENDS_WITH_GPU, policies=("builtin",), MGPU_RT_STATS="/dev/null")
def test_a_graph_whose_memory_changed_is_refused(mgpu: Mgpu) -> None:
    """If the program registers host memory after a graph was built, HIP 6 and 7 omit the graph's
    copies of this memory."""
    stream, pages = mgpu.StreamCreate(), mmap.mmap(-1, 8 * KIB, mmap.MAP_PRIVATE | mmap.MAP_ANON)
    host = mgpu.ffi.from_buffer(pages)
    block = mgpu.MemAlloc(KIB, stream, False)

    def graph_of(copy) -> object:
        with built(mgpu) as graph:
            copy()
            copy()  # each address is looked up once
        replay(mgpu, graph[0], stream)
        return graph[0]

    def refused_for(graph, *words: str) -> None:
        mgpu.Memset32(block, 1, 1, stream)
        assert mgpu.lib.mgpu_rt_graph_launch(graph, stream) == -1
        assert first(mgpu, block) == 1
        assert mgpu.ffi.string(mgpu.lib.mgpu_rt_take_error()) == b"hipErrorInvalidValue"
        said = mgpu.stderr()
        assert "'hipGraphLaunch(graph, stream)' failed with 'hipErrorInvalidValue'" in said
        assert all(word in said for word in words), said

    graph = graph_of(lambda: mgpu.Memcpy(block, host, KIB, stream))
    mgpu.MemHostRegister(host, 8 * KIB)
    refused_for(graph, hex(int(mgpu.ffi.cast("uintptr_t", host))), "registered or unregistered "
                "after the graph was built", "destroy the graph, and build it again")  # fmt: skip
    graph = graph_of(lambda: mgpu.Memcpy(block, host, KIB, stream))
    mgpu.MemHostUnregister(host)
    refused_for(graph)
    mgpu.MemHostRegister(host, 8 * KIB)
    refused_for(graph)  # captured by another call
    mgpu.MemHostUnregister(host)

    other = mgpu.MemAlloc(KIB, stream, False)
    graph = graph_of(lambda: mgpu.Memset32(other, 7, 1, stream))
    replay(mgpu, graph, stream)
    mgpu.MemFree(other, stream)
    refused_for(graph)  # the graph is idle
    assert mgpu.MemAlloc(KIB, stream, False) == other
    refused_for(graph)  # the address has a new owner
    graph = graph_of(lambda: mgpu.Memset32(other, 7, 1, stream))
    assert mgpu.stub.hipFree(mgpu.for_stub(other)) == 0
    refused_for(graph)
    assert mgpu.stats()["failed"] == [
        {"function": "(others)", "error": "hipErrorInvalidValue", "calls": 6}
    ]
    assert mgpu.stats()["graphs"]["launches"] == 5


@in_cases(("launched-again", "never-launched"), HIPSTUB_ASYNC="held")
def test_a_free_of_a_graphs_block_waits_for_the_work_on_it(mgpu: Mgpu, case: str) -> None:
    """With stock, the free waits. Here the graph's next launch writes to the block. If the graph
    was never launched, its end does not wait, and the block gets a new owner."""
    stream, other = mgpu.StreamCreate(), mgpu.StreamCreate()
    out = mgpu.MemAlloc(KIB, other, False)
    with built(mgpu) as graph:
        block = mgpu.MemAlloc(KIB, stream, False)
        mgpu.Memset32(block, 1, KIB // 4, stream)
    mgpu.Memset32(block, 2, KIB // 4, other)
    mgpu.StreamSynchronize(other)
    mgpu.Memcpy(out, block, KIB, other)
    mgpu.MemFree(block, other)
    if case == "launched-again":
        replay(mgpu, graph[0], stream)
    else:
        mgpu.lib.mgpu_rt_graph_destroy(graph[0])
        assert mgpu.MemAlloc(KIB, stream, False) == block
        mgpu.Memset32(block, 3, KIB // 4, stream)
        mgpu.StreamSynchronize(stream)
    mgpu.StreamSynchronize(other)
    assert first(mgpu, out) == 2
    assert mgpu.stderr() == ""


@in_child(HIPSTUB_ASYNC="held", HIPSTUB_FAULT="hipDeviceSynchronize:*:900")
def test_a_graph_that_hip_cannot_wait_for_keeps_its_memory(mgpu: Mgpu) -> None:
    """While another thread captures a stream, HIP refuses to wait for the device."""
    stream, other = mgpu.StreamCreate(), mgpu.StreamCreate()
    with built(mgpu) as graph:
        block = mgpu.MemAlloc(KIB, stream, False)
        mgpu.Memset32(block, 1, KIB // 4, stream)
        mgpu.MemFree(block, stream)
    assert mgpu.lib.mgpu_rt_graph_launch(graph[0], stream) == 0
    mgpu.lib.mgpu_rt_graph_destroy(graph[0])
    assert mgpu.MemAlloc(KIB, other, False) != block
    assert mgpu.pending(stream) > 0
    assert mgpu.stderr().count("'hipDeviceSynchronize()' failed") == 1


@in_child(backends=("softgpu",), policies=("builtin",), MGPU_RT_SOFTGPU="gfx90a,gfx90a")
def test_a_graph_is_launched_from_any_device_on_streams_of_its_own(mgpu: Mgpu) -> None:
    """HIP 5.2.3 crashes if a graph of one device is launched while another device is current, or on
    a stream of another device."""
    stream, function = mgpu.StreamCreate(), forum(mgpu)
    block = mgpu.MemAlloc(KIB, stream, False)
    with built(mgpu) as graph:
        mgpu.launch(function, stream)
        mgpu.Memset32(block, 5, 1, stream)
    assert mgpu.stub.hipSetDevice(1) == 0
    replay(mgpu, graph[0], stream)
    assert first(mgpu, block) == 5
    device = mgpu.stub_ffi.new("int *")
    assert (mgpu.stub.hipGetDevice(device), device[0]) == (0, 1)
    for other in (mgpu.StreamCreate(), mgpu.null):
        assert mgpu.lib.mgpu_rt_graph_launch(graph[0], other) == -1
    said = mgpu.stderr()
    assert said.count("'hipGraphLaunch(graph, stream)' failed with 'hipErrorInvalidDevice'") == 2
    assert "the graph was built on device 0, and is launched on a stream of device 1" in said
    mgpu.lib.mgpu_rt_graph_destroy(graph[0])
    with built(mgpu) as graph:
        assert mgpu.stub.hipSetDevice(0) == 0
    assert graph == [None]
    assert "it begins on device 1 and ends on device 0" in mgpu.stderr()


@in_child()
def test_a_reset_loses_a_graph(mgpu: Mgpu) -> None:
    stream = mgpu.StreamCreate()
    with built(mgpu) as graph:
        block = mgpu.MemAlloc(KIB, stream, False)
        mgpu.Memset32(block, 6, 1, stream)
    assert mgpu.stub.hipDeviceReset() == 0
    assert mgpu.lib.mgpu_rt_graph_launch(graph[0], mgpu.StreamCreate()) == -1
    assert "hipErrorContextIsDestroyed" in mgpu.stderr()
    mgpu.lib.mgpu_rt_graph_destroy(graph[0])
    assert mgpu.stub.hipstub_misuse() == 0


@in_child(policies=("builtin",))
def test_a_child_of_fork_launches_no_graph_of_its_parent(mgpu: Mgpu) -> None:
    """The launch is the child's first call."""
    stream = mgpu.StreamCreate()
    block = mgpu.MemAlloc(KIB, stream, False)
    with built(mgpu) as graph:
        mgpu.Memset32(block, 1, KIB // 4, stream)
    launched = mgpu.count("hipGraphLaunch")
    child = os.fork()
    if child == 0:
        refused = mgpu.lib.mgpu_rt_graph_launch(graph[0], stream) != 0
        os._exit(not refused or mgpu.count("hipGraphLaunch") > launched)
    assert os.waitpid(child, 0)[1] == 0
    replay(mgpu, graph[0], stream)
    assert mgpu.count("hipGraphLaunch") == launched + 1
