"""Tests the memory of DeviceArray: the cache of the library serves it, by the sizes of blocks."""

from __future__ import annotations

import mgpu_rt
from tests.support.child import Mgpu, in_child

KIB, MIB = 1 << 10, 1 << 20


@in_child()
def test_arrays_of_one_class_share_a_block(mgpu: Mgpu) -> None:
    for size in (97 * KIB, 104 * KIB, 100 * KIB):
        array = mgpu_rt.empty((size,), "uint8")
        del array
    assert mgpu.count("hipMalloc") == 1


@in_child(MGPU_RT_MEMORY_LIMIT="1M")
def test_the_limit_bounds_the_bytes_that_hip_holds(mgpu: Mgpu) -> None:
    """Each array of 900 KB has a block of 1 MB, so the cache keeps one block."""
    arrays = [mgpu_rt.empty((900 * KIB,), "uint8") for _ in range(4)]
    del arrays
    assert mgpu.stub.hipstub_live(b"bytes") <= MIB
