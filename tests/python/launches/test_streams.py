"""mgpu_rt.use_stream: the streams that it accepts, and the work that runs on these streams."""

from __future__ import annotations

import gc
import threading
import weakref
from types import SimpleNamespace
from typing import Any

import numpy
import pytest

import mgpu_rt
from mgpu_rt._streams import chosen_stream, handle_of
from tests.python.launches import KERNELS
from tests.support import lower
from tests.support.child import Mgpu, in_child

# ---- handles ----


@pytest.mark.parametrize(
    ("stream", "handle"),
    [
        (0, 0),
        (0x1234, 0x1234),
        (numpy.uint64(0x1234), 0x1234),
        (SimpleNamespace(cuda_stream=0x1234), 0x1234),
        (SimpleNamespace(ptr=0x1234), 0x1234),
        (SimpleNamespace(__cuda_stream__=lambda: (0, 0x1234)), 0x1234),
        (SimpleNamespace(__cuda_stream__=lambda: (0, 0x1234), ptr=1), 0x1234),
    ],
)
def test_streams_of_other_libraries_have_handles(stream: Any, handle: int) -> None:
    assert handle_of(stream) == handle


@pytest.mark.parametrize("stream", ["text", object(), 1.5, SimpleNamespace(ptr="text"), True])
def test_other_objects_are_refused_as_streams(stream: Any) -> None:
    with pytest.raises(TypeError, match="is not a stream"):
        handle_of(stream)


# ---- use_stream ----


def address(mgpu: Mgpu, pointer: Any) -> int:
    return int(mgpu.ffi.cast("uintptr_t", pointer))


def created(mgpu: Mgpu) -> int:
    """Returns the stream that a lowered function would receive at this moment."""
    stream = mgpu.StreamCreate()
    mgpu.StreamDestroy(stream)
    return address(mgpu, stream)


@in_child(policies=("builtin",), backends=("stub", "softgpu"))
def test_streams_nest(mgpu: Mgpu) -> None:
    """A loan ends with its block, also by an exception, and counts only in its own thread."""
    outer, inner = mgpu_rt.Stream(), mgpu_rt.Stream()
    seen: list[Any] = []
    with mgpu_rt.use_stream(outer):
        assert created(mgpu) == chosen_stream() == outer.handle == handle_of(outer)
        with mgpu_rt.use_stream(SimpleNamespace(cuda_stream=inner.handle)):
            assert created(mgpu) == inner.handle
            with mgpu_rt.use_stream(None):
                own = created(mgpu)
                assert own not in (outer.handle, inner.handle)
            assert created(mgpu) == inner.handle
        with pytest.raises(KeyError), mgpu_rt.use_stream(inner):
            raise KeyError
        with pytest.raises(TypeError), mgpu_rt.use_stream("text"):
            pass
        assert created(mgpu) == outer.handle
        thread = threading.Thread(target=lambda: seen.append(created(mgpu)))
        thread.start()
        thread.join()
    assert created(mgpu) == own and chosen_stream() is None
    assert seen and seen[0] != outer.handle
    assert mgpu.stderr() == ""


@in_child(policies=("builtin",))
def test_a_lent_stream_object_is_kept(mgpu: Mgpu) -> None:
    class Stream:
        ptr = address(mgpu, mgpu.StreamCreate())

    stream = Stream()
    gone = weakref.ref(stream)
    lent = mgpu_rt.use_stream(stream)
    with lent:
        del stream
        gc.collect()
        assert gone() is not None
    del lent
    gc.collect()
    assert gone() is None


@in_child(policies=("builtin",))
def test_launches_go_to_the_stream(mgpu: Mgpu) -> None:
    """The package does not wait for launches on the given stream, but waits for launches on the
    library's own stream."""
    module = mgpu_rt.Module(lower.code_object(KERNELS, "gfx90a"))
    stream, ran = mgpu_rt.Stream(), []
    waits, creations = mgpu.count("hipStreamSynchronize"), mgpu.count("hipStreamCreate")

    def launch(**options: Any) -> tuple[int, int]:
        """Returns how often the launch called hipStreamSynchronize and hipStreamCreate."""
        before = mgpu.counts("hipStreamSynchronize", "hipStreamCreate")
        module["scale"](1, 1, 0, 0, 0, 0, 1, 1.0, 0, **options)
        after = mgpu.counts("hipStreamSynchronize", "hipStreamCreate")
        ran.append(1)
        return tuple(after[name] - before[name] for name in after)

    assert launch(stream=stream) == (0, 0)
    assert launch(stream=0) == (0, 0)
    with mgpu_rt.use_stream(stream):
        assert launch() == (0, 0)
        with mgpu_rt.use_stream(0):
            assert launch() == (0, 0)
    assert launch() == (1, 1)
    assert (waits, creations) == (0, 1)
    assert mgpu.count("hipModuleLaunchKernel") == len(ran)
