"""Tests streams as Python objects."""

from __future__ import annotations

import gc
import threading

import pytest

import mgpu_rt
from mgpu_rt._launch.streams import handle_of
from tests.support.child import Mgpu, in_child
from tests.support.patience import HANG

on_both = in_child(policies=("builtin",), backends=("stub", "softgpu"))


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
def test_a_stream_ends_with_its_object(mgpu: Mgpu) -> None:
    stream = mgpu_rt.Stream()
    assert repr(stream) == f"<mgpu_rt.Stream {stream.handle:#x}>"
    handle = stream.handle
    stream.synchronize()
    del stream
    gc.collect()
    again = mgpu_rt.Stream()
    assert again.handle == handle  # the library had released the stream
    again.close()
    again.close()
    assert again.closed and repr(again) == "<mgpu_rt.Stream closed>"
    for use in (again.__enter__, again.synchronize, again.__cuda_stream__):
        with pytest.raises(ValueError, match="the stream is closed"):
            use()
    assert mgpu_rt.load().chosen_stream is None
    assert mgpu.stderr() == ""
