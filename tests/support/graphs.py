"""Graphs that the library builds, and captures of an external stream."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.child import Mgpu

KIB = 1024
GLOBAL, THREAD_LOCAL, RELAXED = range(3)  # the modes of a capture


class Capture:
    """An external stream that the program created, and the graph that the program captures on this
    stream."""

    def __init__(self, mgpu: Mgpu) -> None:
        self.mgpu = mgpu
        self.stream = mgpu.external_stream()
        self.own = mgpu.for_stub(self.stream)
        self.graph, self.executable = (mgpu.stub_ffi.new("void **") for _ in range(2))

    @contextmanager
    def __call__(self, mode: int = THREAD_LOCAL) -> Iterator[None]:
        stub = self.mgpu.stub
        assert stub.hipStreamBeginCapture(self.own, mode) == 0
        yield
        assert stub.hipStreamEndCapture(self.own, self.graph) == 0
        null = self.mgpu.stub_ffi.NULL
        assert stub.hipGraphInstantiate(self.executable, self.graph[0], null, null, 0) == 0

    def replay(self) -> None:
        assert self.mgpu.stub.hipGraphLaunch(self.executable[0], self.own) == 0
        assert self.mgpu.stub.hipStreamSynchronize(self.own) == 0

    def return_stream(self) -> None:
        assert self.mgpu.lib.mgpu_rt_use_stream(self.mgpu.null) == 0


@contextmanager
def built(mgpu: Mgpu) -> Iterator[list]:
    """Returns the graph of the enclosed calls; None if no graph was built."""
    graph: list = []
    assert mgpu.lib.mgpu_rt_graph_begin() == 0
    yield graph
    found = mgpu.lib.mgpu_rt_graph_end()
    graph.append(None if found == mgpu.null else found)


def replay(mgpu: Mgpu, graph, stream) -> None:
    assert mgpu.lib.mgpu_rt_graph_launch(graph, stream) == 0
    mgpu.StreamSynchronize(stream)


def first(mgpu: Mgpu, block) -> int:
    """Reads device memory by calling HIP directly; returns the first word."""
    word = mgpu.stub_ffi.new("int *")
    assert mgpu.stub.hipMemcpy(word, mgpu.for_stub(block), 4, 4) == 0
    return word[0]


def allocate_and_fill(mgpu: Mgpu, stream, value: int):
    block = mgpu.MemAlloc(KIB, stream, False)
    mgpu.Memset32(block, value, KIB // 4, stream)
    return block
