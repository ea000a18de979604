"""Tests hipDeviceReset. Afterwards the library caches nothing of that device, whose calls are those
of stock."""

from __future__ import annotations

from tests.support.child import BACKENDS, Mgpu, in_child
from tests.support.images import code_object

KIB, MIB = 1 << 10, 1 << 20
TWO = {"HIPSTUB_DEVICES": "2", "HIPSTUB_REUSE": "1", "MGPU_RT_SOFTGPU": "gfx90a,gfx90a"}


def on(mgpu: Mgpu, device: int) -> None:
    assert mgpu.stub.hipSetDevice(device) == 0


def reset(mgpu: Mgpu, device: int) -> None:
    on(mgpu, device)
    assert mgpu.stub.hipDeviceReset() == 0


def fill_and_read(mgpu: Mgpu, block, size: int, stream, word: int) -> None:
    """Fills and reads a block; fails if another caller uses the block, or if HIP has freed the
    block."""
    out = mgpu.ffi.new("uint32_t[]", size // 4)
    mgpu.Memset32(block, word, size // 4, stream)
    mgpu.Memcpy(out, block, size, stream)
    mgpu.StreamSynchronize(stream)
    assert set(out) == {word}


def job(mgpu: Mgpu, word: int, size: int = 64 * KIB) -> None:
    stream = mgpu.StreamCreate()
    block = mgpu.MemAlloc(size, stream, False)
    fill_and_read(mgpu, block, size, stream, word)
    mgpu.MemFree(block, stream)
    mgpu.StreamDestroy(stream)


@in_child(backends=BACKENDS, MGPU_RT_EXCLUSIVE="on", **TWO)
def test_a_reset_by_an_override_is_seen(mgpu: Mgpu) -> None:
    """The override ends MGPU_RT_EXCLUSIVE, so memory that was cached before must not be reused."""
    job(mgpu, 1)
    mgpu.passes_on("mgpuMemset16")
    reset(mgpu, 0)
    mgpu.by_hip("hipMalloc", 64 * KIB)  # perhaps at the block's address
    job(mgpu, 2)
    assert mgpu.stderr() == ""
    assert not mgpu.on_stub or mgpu.stub.hipstub_misuse() == 0


MADE = ("hipMalloc", "hipMallocManaged", "hipStreamCreate", "hipModuleLoadData")


def all_of(mgpu: Mgpu, device: int, image) -> dict[str, int]:
    """Creates and releases an object of each kind; returns HIP's calls that create objects."""
    on(mgpu, device)
    before = mgpu.counts(*MADE)
    job(mgpu, device)
    mgpu.MemFree(mgpu.MemAlloc(KIB, mgpu.null, True), mgpu.null)
    mgpu.ModuleUnload(mgpu.load(image))
    return {name: count - before[name] for name, count in mgpu.counts(*MADE).items()}


@in_child(**TWO)
def test_a_reset_of_one_device_keeps_the_others_cache(mgpu: Mgpu) -> None:
    image = mgpu.image(code_object("forum"))
    for device in (0, 1):
        all_of(mgpu, device, image)
    on(mgpu, 0)
    stream = mgpu.StreamCreate()
    held = mgpu.MemAlloc(KIB, stream, False)
    reset(mgpu, 1)
    for _ in range(2):
        assert all_of(mgpu, 1, image) == dict.fromkeys(MADE, 1)
    on(mgpu, 0)
    freed = mgpu.count("hipFree")
    mgpu.MemFree(held, stream)
    assert mgpu.count("hipFree") == freed
    mgpu.StreamDestroy(stream)
    assert all_of(mgpu, 0, image) == dict.fromkeys(MADE, 0)
    assert mgpu.stderr() == ""
    assert mgpu.stub.hipstub_misuse() == 0


@in_child(**TWO)
def test_after_a_reset_hip_gets_all_but_managed_memory_back(mgpu: Mgpu) -> None:
    """AMD's HIP from 5.2.3 to 7.2.4 keeps managed memory at the reset of one of several devices.
    The library had 1 KiB of it idle."""
    image = mgpu.image(code_object("forum"))
    all_of(mgpu, 1, image)
    reset(mgpu, 1)
    all_of(mgpu, 1, image)
    assert mgpu.stub.hipstub_live(b"streams") == 0
    assert mgpu.stub.hipstub_live(b"modules") == 0
    assert mgpu.stub.hipstub_live(b"bytes") == KIB


@in_child(MGPU_RT_EXCLUSIVE="on", **TWO)
def test_a_reset_of_one_device_leaves_the_pinned_memory_for_all(mgpu: Mgpu) -> None:
    image = mgpu.image(code_object("forum"))
    all_of(mgpu, 1, image)
    on(mgpu, 0)
    stream = mgpu.StreamCreate()
    block = mgpu.MemAlloc(KIB, stream, False)
    mgpu.Memcpy(block, mgpu.ffi.new("char[]", KIB), KIB, stream)
    mgpu.StreamSynchronize(stream)
    assert mgpu.count("hipHostMalloc") == 1
    mgpu.passes_on("mgpuMemset16")  # ends MGPU_RT_EXCLUSIVE
    reset(mgpu, 1)
    all_of(mgpu, 1, image)
    mgpu.lib.mgpu_rt_empty_cache()
    assert mgpu.count("hipHostFree") == 1
    assert mgpu.stub.hipstub_misuse() == 0


@in_child()
def test_a_handle_of_before_a_reset_goes_to_hip(mgpu: Mgpu) -> None:
    """HIP judges the handle, as with stock."""
    stream, idle = mgpu.StreamCreate(), mgpu.StreamCreate()
    mgpu.StreamDestroy(idle)
    block = mgpu.MemAlloc(KIB, stream, False)
    reset(mgpu, 0)
    calls = {
        "hipFree": lambda: mgpu.MemFree(block, mgpu.null),
        "hipStreamDestroy": lambda: mgpu.StreamDestroy(stream),
        "hipStreamSynchronize": lambda: mgpu.StreamSynchronize(idle),
    }
    for function, call in calls.items():
        before = mgpu.count(function)
        call()
        assert mgpu.count(function) == before + 1, function
        assert f"'{function}(" in mgpu.stderr()


REUSED = {"HIPSTUB_DEVICES": "5", "HIPSTUB_REUSE": "1"}


@in_child(**REUSED)
def test_a_reset_is_noticed_before_anything_is_reused(mgpu: Mgpu) -> None:
    """The library must notice the reset in the first call after the reset. HIP may already have
    given a cached object's handle to the program."""
    image = mgpu.image(code_object("forum"))
    reset_by = {
        "hipModuleLoadData": lambda: mgpu.ModuleUnload(mgpu.load(image)),
        "hipStreamCreate": lambda: mgpu.StreamDestroy(mgpu.StreamCreate()),
        "hipMalloc": lambda: mgpu.MemFree(mgpu.MemAlloc(KIB, mgpu.null, False), mgpu.null),
        "hipMallocManaged": lambda: mgpu.MemFree(mgpu.MemAlloc(KIB, mgpu.null, True), mgpu.null),
    }
    for device, (function, once) in enumerate(reset_by.items()):
        on(mgpu, device)
        once()
        before = mgpu.count(function)
        once()
        assert mgpu.count(function) == before, function
        assert mgpu.stub.hipDeviceReset() == 0
        for _ in range(200):  # one of these has the handle that was ours
            mgpu.by_hip("hipStreamCreate")
            mgpu.by_hip("hipEventCreateWithFlags", 2)
        before = mgpu.count(function)
        once()
        assert mgpu.count(function) == before + 1, function
    assert mgpu.stderr() == ""


@in_child(HIPSTUB_MEMORY=str(MIB), HIPSTUB_DEVICES="2", HIPSTUB_REUSE="1")
def test_memory_from_before_a_reset_is_not_freed_to_make_room(mgpu: Mgpu) -> None:
    """After the reset, memory of the program is at the old address of a cached block. The library
    must not free this memory when an allocation on another device fails."""
    on(mgpu, 1)
    mgpu.MemFree(mgpu.MemAlloc(64 * KIB, mgpu.null, False), mgpu.null)
    reset(mgpu, 1)
    own = mgpu.by_hip("hipMalloc", 64 * KIB)
    on(mgpu, 0)
    assert mgpu.MemAlloc(MIB, mgpu.null, False) == mgpu.null
    assert mgpu.count("hipFree") == 0
    assert mgpu.stub.hipFree(mgpu.for_stub(own)) == 0


@in_child(HIPSTUB_DEVICES="2")
def test_a_thread_that_changes_devices_gets_its_streams_back(mgpu: Mgpu) -> None:
    """A thread keeps the stream that the thread used last; any thread may take older streams."""
    for number in range(20):
        mgpu.SetDefaultDevice(number % 2)
        mgpu.StreamDestroy(mgpu.StreamCreate())
    assert mgpu.count("hipStreamCreate") == 2
