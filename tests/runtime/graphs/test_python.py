"""mgpu_rt.graph: a graph in a `with` statement."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest

from tests.python.launches import EXAMPLES, KERNELS
from tests.support import lower
from tests.support.child import Mgpu, environment, in_child
from tests.support.patience import run_process


def test_the_example_replays_a_lowered_function() -> None:
    env = environment("softgpu", OBJECT=str(lower.lower(KERNELS, llvm=22)))
    done = run_process([sys.executable, "graph.py"], env, cwd=EXAMPLES)
    assert (done.stdout, done.stderr) == ("5000 right results of 3 nodes\n", "")


@in_child()
def test_a_graph_lives_until_its_last_reference_is_gone(mgpu: Mgpu) -> None:
    import mgpu_rt

    library = mgpu_rt.load()
    stream = library.mgpuStreamCreate()
    with mgpu_rt.graph() as graph:
        with pytest.raises(ValueError, match="not built yet"):
            graph.replay()
        block = library.mgpuMemAlloc(256, stream, False)
        library.mgpuMemset32(block, 1, 4, stream)
    assert repr(graph) == "<mgpu_rt.Graph of 1 nodes>"
    graph.replay()
    assert mgpu.count("hipGraphExecDestroy") == 0
    del graph
    assert mgpu.count("hipGraphExecDestroy") == 1
    assert mgpu.stub.hipstub_live(b"graphs") == 0


@in_child()
def test_a_call_that_cannot_be_in_a_graph_is_an_exception(mgpu: Mgpu) -> None:
    import mgpu_rt

    with pytest.raises(mgpu_rt.HipError, match="was not built"), mgpu_rt.graph():
        mgpu_rt.load().mgpuMemHostRegister(4096, 4096)
    assert "mgpuMemHostRegister cannot be in a graph" in mgpu.stderr()
    with pytest.raises(ZeroDivisionError), mgpu_rt.graph():
        _ = 1 / 0
    assert mgpu.stub.hipstub_live(b"graphs") == 0


@in_child()
def test_a_signal_handler_that_raises_ends_the_building(mgpu: Mgpu) -> None:
    """Python runs signal handlers at several points, such as the start of a function. The calls
    after the interrupt run immediately."""
    import mgpu_rt

    block = mgpu.MemAlloc(256, mgpu.null, False)
    left = 0

    def handle(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal left
        left -= event == "call"
        if left == 0 and event == "call":
            raise KeyboardInterrupt

    def build() -> None:
        with mgpu_rt.graph():
            mgpu_rt.load().mgpuMemset32(0, 1, 0, 0)

    build()
    point, interrupted = 0, True
    while interrupted:
        left = point = point + 1
        sys.setprofile(handle)
        try:
            build()
            interrupted = False
        except KeyboardInterrupt:
            pass
        finally:
            sys.setprofile(None)
        fills = mgpu.count("hipMemsetD32Async")
        mgpu.Memset32(block, 1, 1, mgpu.null)
        assert mgpu.count("hipMemsetD32Async") == fills + 1, point
    assert point > 20
