"""Tests streams as Python objects."""

from __future__ import annotations

import gc

import pytest

import mgpu_rt
from tests.support.child import Mgpu, in_child

on_both = in_child(policies=("builtin",), backends=("stub", "softgpu"))


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
    for use in (again.__int__, again.synchronize, again.__cuda_stream__):
        with pytest.raises(ValueError, match="the stream is closed"):
            use()
    assert mgpu.stderr() == ""
