"""The caches never rely on a guess: results stay right even if other code calls HIP.

"Not in a table", "not seen so far" and "once belonged to the library" prove nothing. Each test
here, and in test_known_limits.py and test_known_hosts.py, runs a program that works with stock.
"""

from __future__ import annotations

from tests.support.child import Mgpu, in_cases, in_child
from tests.support.images import code_object
from tests.support.known import KERNEL, forum

KIB = 1 << 10


# ---- 1: addresses that no table has --------------------------------------------------------------


@in_child(HIPSTUB_ASYNC="held")
def test_01_a_modules_global_is_not_host_memory(mgpu: Mgpu) -> None:
    """AMD's HIP 5.2.3 returns the same error for the address of the global as for pageable
    memory."""
    function, module = forum(mgpu), mgpu.load(mgpu.image(code_object("globals")))
    found, size = mgpu.stub_ffi.new("void **"), mgpu.stub_ffi.new("size_t *")
    assert mgpu.stub.hipModuleGetGlobal(found, size, mgpu.for_stub(module), b"launches") == 0
    address = mgpu.from_stub(found[0])
    body = mgpu.ffi.callback("void(void **)", lambda _: mgpu.ffi.memmove(address, b"\7\0\0\0", 4))
    mgpu.set_kernel(KERNEL, body)
    stream = mgpu.StreamCreate()
    block, out = mgpu.MemAlloc(KIB, stream, False), mgpu.ffi.new("char[]", 4)
    mgpu.launch(function, stream)
    mgpu.Memcpy(block, address, 4, stream)
    mgpu.Memcpy(out, block, 4, stream)
    mgpu.StreamSynchronize(stream)
    assert bytes(mgpu.ffi.buffer(out)) == b"\7\0\0\0"


# ---- 6: handles that HIP reuses ------------------------------------------------------------------


@in_child(HIPSTUB_REUSE="1")
def test_06_a_foreign_module_at_our_address_is_not_ours(mgpu: Mgpu) -> None:
    image = mgpu.image(code_object("forum"))
    ours = mgpu.load(image)
    mgpu.ModuleUnload(ours)
    mgpu.lib.mgpu_rt_empty_cache()
    again = mgpu.by_hip("hipModuleLoadData", mgpu.for_stub(image))
    assert again == ours
    assert mgpu.function(again, KERNEL)
    mgpu.ModuleUnload(again)
    assert mgpu.stderr() == ""
    assert mgpu.stub.hipstub_live(b"modules") == 0


@in_cases({"5": {}, "7": {"HIPSTUB_VERSION": "70200000"}}, HIPSTUB_REUSE="1", HIPSTUB_DEVICES="2")
def test_06_a_stream_of_another_device_at_our_address_is_not_ours(mgpu: Mgpu, _: str) -> None:
    """The program has destroyed the library's stream by calling HIP. HIP has returned the handle
    for a stream that the program creates by calling HIP. The program destroys that stream by
    mgpuStreamDestroy, which works with stock."""
    for held in (1, 2):  # the thread's last stream, or another one
        mgpu.SetDefaultDevice(0)
        ours = mgpu.StreamCreate()
        others = [mgpu.StreamCreate() for _ in range(1, held)]
        assert mgpu.stub.hipStreamDestroy(mgpu.for_stub(ours)) == 0
        mgpu.SetDefaultDevice(1)
        again = mgpu.hip_stream()
        assert again == ours
        before = mgpu.stub.hipstub_live(b"streams")
        mgpu.StreamDestroy(again)
        assert mgpu.stub.hipstub_live(b"streams") == before - 1
        for stream in others:
            mgpu.StreamDestroy(stream)
    assert mgpu.stderr() == ""


@in_child(HIPSTUB_VERSION="70200000")
def test_06_a_stream_that_the_program_destroyed_by_hip_is_not_reused(mgpu: Mgpu) -> None:
    """The program also destroys the stream by mgpuStreamDestroy, which works with stock. HIP 7
    returns flags for any address."""
    ours = mgpu.StreamCreate()
    assert mgpu.stub.hipStreamDestroy(mgpu.for_stub(ours)) == 0
    mgpu.StreamDestroy(ours)
    assert mgpu.count("hipStreamDestroy") == 2
    assert mgpu.stub.hipGetLastError() == 709  # of the destroy, not of a question before it
    stream = mgpu.StreamCreate()
    assert stream != ours
    mgpu.launch(forum(mgpu), stream)
    mgpu.StreamSynchronize(stream)
    assert mgpu.stub.hipstub_pending(mgpu.for_stub(stream)) == 0


@in_cases({"5": {}, "7": {"HIPSTUB_VERSION": "70200000"}}, HIPSTUB_REUSE="2")
def test_06_a_foreign_event_at_our_streams_address_is_an_event(mgpu: Mgpu, _: str) -> None:
    """LLVM 22 may pass a stream in place of an event. The program has destroyed the stream by
    calling HIP, and HIP has given the stream's handle to an event."""
    stream = mgpu.StreamCreate()
    ours = mgpu.StreamCreate()
    assert mgpu.stub.hipStreamDestroy(mgpu.for_stub(ours)) == 0
    event = mgpu.by_hip("hipEventCreateWithFlags", 2)
    assert event == ours
    mgpu.EventSynchronize(event)
    mgpu.EventRecord(event, stream)
    mgpu.StreamWaitEvent(stream, event)
    mgpu.EventSynchronize(event)
    mgpu.EventDestroy(event)
    assert mgpu.stderr() == ""
    assert mgpu.stub.hipstub_misuse() == 0
    assert mgpu.stub.hipstub_live(b"events") == 0


# ---- 11: blocks that the program gave to hipFree -------------------------------------------------


@in_cases(("own", "after a reset"), HIPSTUB_REUSE="1", HIPSTUB_DEVICES="2")
def test_11_a_block_of_another_device_at_the_same_address_is_another_block(
    mgpu: Mgpu, memory: str
) -> None:
    """The program has freed the library's block by calling HIP. HIP has put memory of another
    device at the address. After a reset of that device the library does not cache the memory."""
    resets = memory == "after a reset"
    if resets:
        mgpu.SetDefaultDevice(1)
        mgpu.MemFree(mgpu.MemAlloc(KIB, mgpu.null, False), mgpu.null)
        assert mgpu.stub.hipDeviceReset() == 0
        mgpu.SetDefaultDevice(0)
    stream = mgpu.StreamCreate()
    block = mgpu.MemAlloc(4 * KIB, stream, False)
    assert mgpu.stub.hipFree(mgpu.for_stub(block)) == 0
    mgpu.SetDefaultDevice(1)
    ours = mgpu.MemAlloc(4 * KIB, mgpu.null, False) if resets else mgpu.by_hip("hipMalloc", 4 * KIB)
    assert ours == block
    before = mgpu.stub.hipstub_live(b"allocations")
    mgpu.MemFree(block, mgpu.null)
    assert mgpu.stub.hipstub_live(b"allocations") == before - 1
    assert mgpu.stderr() == ""
    assert mgpu.stub.hipstub_misuse() == 0
