"""Tests devices, streams and events as Python objects."""

from __future__ import annotations

import gc
import threading

import numpy
import pytest

import mgpu_rt
from mgpu_rt._launch.streams import handle_of
from tests.python.functions import DEVICE, library
from tests.support.child import Mgpu, in_child
from tests.support.patience import HANG

on_both = in_child(policies=("builtin",), backends=("stub", "softgpu"))
on_softgpu = in_child(policies=("builtin",), backends=("softgpu",))


# ---- streams and events ----


@on_both
def test_a_stream_is_lent_by_with(mgpu: Mgpu) -> None:
    runtime, outer, inner = mgpu_rt.load(), mgpu_rt.Stream(), mgpu_rt.Stream()
    assert handle_of(outer) == outer.handle == int(outer.__index__())
    with outer:
        assert runtime.chosen_stream == outer.handle
        with inner, inner:
            assert runtime.chosen_stream == inner.handle
        assert runtime.chosen_stream == outer.handle
        with pytest.raises(KeyError), inner:
            raise KeyError
        assert runtime.chosen_stream == outer.handle
    assert runtime.chosen_stream is None
    seen: list[object] = []
    with outer:
        thread = threading.Thread(target=lambda: seen.append(runtime.chosen_stream))
        thread.start()
        thread.join(HANG)
    assert seen == [None]
    assert mgpu.stderr() == ""


@on_both
def test_handles_end_with_their_objects(mgpu: Mgpu) -> None:
    stream, event = mgpu_rt.Stream(), mgpu_rt.Event()
    assert repr(stream).startswith("<mgpu_rt.Stream 0x")
    handle = stream.handle
    del stream
    gc.collect()
    again = mgpu_rt.Stream()
    assert again.handle == handle  # the library had released the stream
    again.close()
    again.close()
    with event:
        event.record()
        event.synchronize()
    for thing, kind in ((again, "stream"), (event, "event")):
        assert thing.closed and "closed" in repr(thing)
        with pytest.raises(ValueError, match=f"the {kind} is closed"):
            _ = thing.handle
    with pytest.raises(ValueError, match="the stream is closed"), again:
        pass
    assert mgpu_rt.load().chosen_stream is None
    assert mgpu.stderr() == ""


@on_softgpu
def test_events_order_streams_and_have_times(mgpu: Mgpu) -> None:
    functions, array = library(DEVICE), mgpu_rt.to_device(numpy.arange(1000, dtype="f4"))
    first, second = mgpu_rt.Stream(), mgpu_rt.Stream()
    start = mgpu_rt.Event(timing=True)
    start.record(first)
    with first:
        functions.scale(array, 2)
    second.wait(first.record())
    with second:
        functions.scale(array, 3)
        end = mgpu_rt.Event()
        end.record()
    end.synchronize()
    assert (array.to_host() == 6 * numpy.arange(1000)).all()
    assert end.milliseconds_since(start) >= 0
    with pytest.raises(mgpu_rt.HipError, match="the time between the events is not known"):
        mgpu_rt.Event().milliseconds_since(start)  # the event was never recorded
    first.synchronize()


@in_child(policies=("builtin",), HIPSTUB_DEVICES="2")
def test_a_device_is_the_threads_within_with(mgpu: Mgpu) -> None:
    first, second = mgpu_rt.Device(), mgpu_rt.Device(1)
    assert mgpu_rt.Device.current() == first
    with second, second:
        assert mgpu_rt.Device.current() == second
        assert mgpu_rt.empty(4).device == 1
        with first:
            assert mgpu_rt.Device.current() == first
        assert mgpu_rt.Device.current() == second
    assert mgpu_rt.Device.current() == first
    with pytest.raises(mgpu_rt.HipError, match="device 7 cannot be used"), mgpu_rt.Device(7):
        pass
    assert mgpu_rt.Device.current() == first
    with pytest.raises(ValueError, match="-1 is not a number of a device"):
        mgpu_rt.Device(-1)
    assert len({first, mgpu_rt.Device(0), second}) == 2 and repr(second) == "mgpu_rt.Device(1)"
