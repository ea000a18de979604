"""Tests graphs and external streams together with hooks and runtimes. Each test shows which part
answers a call, or which parts exclude each other (csrc/runtime/abi/override.h)."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

import mgpu_rt
from mgpu_rt import hooks, runtime
from tests.runtime.graphs.test_function import COUNTED, Functions, counted
from tests.support.child import BACKENDS, Mgpu, in_child
from tests.support.graphs import GLOBAL, KIB, Capture, allocate_and_fill, built, first, replay
from tests.support.known import forum

alone = {"policies": ("builtin",)}
ANSWERS = (
    "a hook or runtime in Python answers its calls (--hook, mgpu_rt.intercept, "
    "mgpu-rt check or diff)"
)


class Reads(runtime.Runtime):
    """A hook that reads the filled memory after each fill."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[int] = []

    def memset32(self, address: int, value: int, count: int, stream: int) -> None:
        super().memset32(address, value, count, stream)
        content = runtime.Buffer(address, 4).content(stream)
        self.seen.append(int.from_bytes(content, "little"))


@contextmanager
def overridden(mgpu: Mgpu, function: str = "mgpuStreamCreate") -> Iterator[list[int]]:
    """Replaces a function of the library by a C function. Yields a list that gets an entry for each
    call."""
    asked: list[int] = []
    name, ffi = function.encode(), mgpu.ffi
    own = ffi.cast("void *(*)(void *)", mgpu.lib.mgpu_rt_native(name))

    @ffi.callback("void *(void *)")
    def answer(handle: Any) -> Any:
        asked.append(1)
        return own(handle)

    assert mgpu.lib.mgpu_rt_intercept(name, ffi.cast("mgpu_rt_function", answer)) == 0
    yield asked
    assert mgpu.lib.mgpu_rt_intercept(name, ffi.NULL) == 0


# ---- functions of `mgpu-rt lower --graph` --------------------------------------------------------


@in_child(**COUNTED)
def test_a_function_runs_plainly_and_right_under_each_hook_and_runtime(mgpu: Mgpu) -> None:
    """A hook sees every launch, even a launch that a graph would otherwise record or replay."""
    with tempfile.TemporaryDirectory() as scratch:
        recording = str(Path(scratch, "recording"))
        for override in (
            hooks.Trace(),
            hooks.NanCheck(dtype="f32"),
            runtime.Record(output=recording, nth=3),
            runtime.PlainRuntime(),
            runtime.CachedRuntime(),
            runtime.Singleton(),
        ):
            with mgpu_rt.intercept(override):
                functions = Functions("scale")  # this loads its module
                array = functions.array()
                for call in range(4):
                    functions.check(array, call, 2)
            assert counted(mgpu)[:2] == (0, 0), override
        said = mgpu.stderr()
        assert said.count(f"mgpu_rt: 'scale' runs without a graph: {ANSWERS}\n") == 1
        assert "the graph is not built" not in said
        assert said.count("scale<1, 64>(0x") == 4
        assert runtime.Recording(recording).replay().same


@in_child(**COUNTED)
def test_a_function_is_replayed_before_and_after_a_hook(mgpu: Mgpu) -> None:
    functions = Functions("scale")
    array = functions.array()
    for calls, override in ((3, False), (2, True), (4, False)):
        with overridden(mgpu) if override else nullcontext():
            for call in range(calls):
                functions.check(array, call, 2)
    assert counted(mgpu) == (1, 2 + 4, 1 + 2)


# ---- graphs of the program -----------------------------------------------------------------------


@in_child(backends=BACKENDS, **alone)
def test_a_graph_in_python_is_refused_under_a_hook_or_runtime(mgpu: Mgpu) -> None:
    """mgpu_rt.graph() raises an exception, and the later calls run immediately."""
    block = mgpu.MemAlloc(KIB, mgpu.null, False)
    for kind in (Reads, runtime.PlainRuntime, runtime.CachedRuntime):
        with mgpu_rt.intercept(kind()):
            with pytest.raises(mgpu_rt.HipError, match="no graph can be built"), mgpu_rt.graph():
                pass
            mgpu.Memset32(block, 3, KIB // 4, mgpu.null)
        assert first(mgpu, block) == 3


@in_child(**alone)
def test_an_override_that_comes_while_a_graph_is_built_ends_the_building(mgpu: Mgpu) -> None:
    with built(mgpu) as graph, overridden(mgpu) as asked:
        mgpu.StreamCreate()
    assert (graph, asked) == ([None], [])
    assert mgpu.stderr() == f"mgpu_rt: the graph is not built: {ANSWERS}\n"


@in_child(backends=BACKENDS, **alone)
def test_a_graph_of_before_is_replayed_past_a_hook_that_hears_of_it(mgpu: Mgpu) -> None:
    stream = mgpu.StreamCreate()
    block = mgpu.MemAlloc(KIB, stream, False)
    with built(mgpu) as graph:
        mgpu.Memset32(block, 3, KIB // 4, stream)
    with mgpu_rt.intercept(Reads()) as hook:
        for _ in range(2):
            replay(mgpu, graph[0], stream)
    assert (first(mgpu, block), hook.seen) == (3, [])
    (line,) = mgpu.stderr().splitlines()
    assert line.startswith("mgpu_rt: a graph is replayed: ") and "sees nothing of it" in line


# ---- external streams ----------------------------------------------------------------------------


@in_child(**alone)
def test_no_override_is_asked_for_a_lent_stream(mgpu: Mgpu) -> None:
    with overridden(mgpu) as asked:
        lent = mgpu.external_stream()
        assert mgpu.StreamCreate() == lent
        assert asked == []
        with overridden(mgpu, "mgpuStreamDestroy") as destroyed:
            mgpu.StreamDestroy(lent)
            assert destroyed == []
            assert mgpu.lib.mgpu_rt_use_stream(mgpu.null) == 0
            mgpu.StreamDestroy(mgpu.StreamCreate())
        assert (asked, destroyed) == ([1], [1])


# ---- captures ------------------------------------------------------------------------------------


@in_child(backends=BACKENDS, **alone)
def test_the_library_answers_while_a_lent_stream_captures(mgpu: Mgpu) -> None:
    """A hook would read memory to which only a replay writes. A runtime with a cache would hand out
    memory that belongs to the graph."""
    for kind in (Reads, runtime.PlainRuntime, runtime.CachedRuntime):
        with mgpu_rt.intercept(kind()) as override:
            capture = Capture(mgpu)
            outer = allocate_and_fill(mgpu, capture.stream, 1)
            with capture(GLOBAL):
                stream = mgpu.StreamCreate()
                assert stream == capture.stream
                block = allocate_and_fill(mgpu, stream, 5)
                mgpu.Memset32(outer, 6, KIB // 4, stream)
                mgpu.StreamSynchronize(stream)
                mgpu.MemFree(block, stream)
                mgpu.StreamDestroy(stream)
            mine = [allocate_and_fill(mgpu, stream, 9) for _ in range(2)]
            mgpu.StreamSynchronize(stream)
            assert first(mgpu, outer) == 1
            capture.replay()
            assert [first(mgpu, each) for each in (outer, *mine)] == [6, 9, 9]
            capture.return_stream()
            assert getattr(override, "seen", [1, 9, 9]) == [1, 9, 9]
    (line,) = mgpu.stderr().splitlines()
    assert (
        "is being captured: until the capture ends, no hook or runtime in Python gets calls of"
        in line
    )


@in_child(**alone)
def test_no_override_is_asked_while_a_lent_stream_captures(mgpu: Mgpu) -> None:
    capture = Capture(mgpu)
    with overridden(mgpu, "mgpuEventCreate") as asked:
        with capture():
            mgpu.EventCreate()
            assert asked == []
        mgpu.EventCreate()
        assert asked == [1]


@in_child(HIPSTUB_VERSION="60000000", **alone)
def test_a_hook_looks_at_no_launch_that_is_captured(mgpu: Mgpu) -> None:
    """The program has not named the stream to the library, so the library knows nothing about the
    stream."""
    capture = Capture(mgpu)
    capture.return_stream()
    with mgpu_rt.intercept(hooks.Time()) as hook:
        function = forum(mgpu)
        with capture():
            mgpu.launch(function, capture.stream)
        capture.replay()
        mgpu.launch(function, capture.stream)
        assert [len(times) for _, times in hook.times.values()] == [1]
    assert mgpu.count("hipModuleLaunchKernel") == 2
    said = mgpu.stderr()
    assert said.count("the hook looks at no launch that a stream captures") == 1
    assert "1 launch, " in said
