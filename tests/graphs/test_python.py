"""mgpu_rt.graph: a graph in a `with` statement."""

from __future__ import annotations

import subprocess
import sys

import pytest

from mgpu_rt.lowering import lower
from tests.python import EXAMPLES, KERNELS
from tests.support.child import Mgpu, environment, in_child
from tests.support.patience import HANG


def test_the_example_replays_a_lowered_function() -> None:
    env = environment("softgpu", OBJECT=str(lower.lower(KERNELS, llvm=22)))
    done = subprocess.run(
        [sys.executable, "graph.py"],
        cwd=EXAMPLES,
        env=env,
        capture_output=True,
        text=True,
        timeout=HANG,
    )
    assert (done.stdout, done.stderr) == ("5000 right results of 3 nodes\n", "")


@in_child()
def test_a_graph_lives_until_it_is_closed(mgpu: Mgpu) -> None:
    import mgpu_rt

    library = mgpu_rt.load()
    stream = library.mgpuStreamCreate()
    with mgpu_rt.graph() as graph:
        with pytest.raises(ValueError, match="not built yet"):
            graph.replay()
        block = library.mgpuMemAlloc(256, stream, False)
        library.mgpuMemset32(block, 1, 4, stream)
    assert "fill 16 bytes" in graph.dot()
    assert repr(graph) == "<mgpu_rt.Graph of 1 nodes>"
    graph.replay()
    graph.close()
    graph.close()
    with pytest.raises(ValueError, match="closed"):
        graph.replay()
    assert mgpu.stub.hipstub_live(b"graphs") == 0


@in_child()
def test_a_call_that_cannot_be_in_a_graph_is_an_exception(mgpu: Mgpu) -> None:
    import mgpu_rt

    with pytest.raises(mgpu_rt.HipError, match="was not built"), mgpu_rt.graph():
        mgpu_rt.load().mgpuMemHostRegister(mgpu.ffi.cast("void *", 4096), 4096)
    assert "mgpuMemHostRegister cannot be in a graph" in mgpu.stderr()
    with pytest.raises(ZeroDivisionError), mgpu_rt.graph():
        _ = 1 / 0
    assert mgpu.stub.hipstub_live(b"graphs") == 0
