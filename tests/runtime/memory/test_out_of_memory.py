"""Tests mgpu_rt_on_out_of_memory in C, and in Python."""

from __future__ import annotations

import threading
from collections.abc import Callable

import mgpu_rt
from tests.support.child import Mgpu, in_cases, in_child

KIB = 1 << 10
MIB = 1 << 20
SMALL = {"HIPSTUB_MEMORY": str(MIB), "policies": ("builtin",)}


def alloc(mgpu: Mgpu, size: int, stream: object = None):
    return mgpu.MemAlloc(size, stream or mgpu.null, False)


def ask(mgpu: Mgpu, make_room: Callable[[int, int], None]) -> None:
    callback = mgpu.ffi.callback("void(int, size_t)", make_room)
    mgpu.keep(callback)
    mgpu.lib.mgpu_rt_on_out_of_memory(callback)


def asked_and_freeing(mgpu: Mgpu) -> list[tuple[int, int]]:
    """Holds 600 KiB, which `make_room` frees; returns the list of calls to `make_room`."""
    held, asked = [alloc(mgpu, 600 * KIB)], []

    def make_room(device: int, size: int) -> None:
        asked.append((device, size))
        if held:
            mgpu.MemFree(held.pop(), mgpu.null)

    ask(mgpu, make_room)
    return asked


@in_child(**SMALL)
def test_the_program_is_asked_before_an_allocation_fails(mgpu: Mgpu) -> None:
    held, asked = [alloc(mgpu, 512 * KIB)], []

    def make_room(device: int, size: int) -> None:
        asked.append((device, size))
        assert alloc(mgpu, 4 * MIB) == mgpu.null  # this asks no listener
        if held:
            mgpu.MemFree(held.pop(), mgpu.null)

    ask(mgpu, make_room)
    assert alloc(mgpu, MIB) != mgpu.null
    assert asked == [(0, MIB)]
    assert mgpu.stub.hipPeekAtLastError() == 0
    mgpu.stderr()
    assert alloc(mgpu, MIB) == mgpu.null  # nothing is left that could be freed
    assert asked == [(0, MIB)] * 2
    assert mgpu.stub.hipPeekAtLastError() != 0
    mgpu.stderr()
    mgpu.lib.mgpu_rt_on_out_of_memory(mgpu.ffi.NULL)
    assert alloc(mgpu, MIB) == mgpu.null
    assert len(asked) == 2
    assert mgpu.stderr().count("failed with 'hipErrorOutOfMemory'") == 1


MODES = {
    "exclusive": {"MGPU_RT_EXCLUSIVE": "on", "MGPU_RT_SYNC": "lazy"},
    "off": {"MGPU_RT_CACHE": "off"},
    "counted": {"MGPU_RT_STATS": "/dev/null"},
}


@in_cases(MODES, HIPSTUB_MEMORY=str(MIB))
def test_it_is_asked_in_each_mode(mgpu: Mgpu, mode: str) -> None:
    asked = asked_and_freeing(mgpu)
    stream = mgpu.StreamCreate()
    block = alloc(mgpu, MIB, stream)
    assert block != mgpu.null
    assert asked == [(0, MIB)]
    mgpu.Memset32(block, 1, 64, stream)
    mgpu.StreamSynchronize(stream)
    mgpu.MemFree(block, stream)
    mgpu.StreamDestroy(stream)
    assert mgpu.stderr() == ""
    if mode == "counted":
        said = mgpu.stats()
        assert said["memory"]["0"]["allocated"] == 0
        assert said["abi"]["mgpuMemFree"]["calls"] == 2
        assert said["failed"] == []


HELD = 500 * KIB  # of a block of 512 KiB
COUNTED = f"the program holds {HELD} bytes on device 0, and nothing is cached any more"

#: For each case: the end of the message about a failed allocation.
MESSAGES = {
    "cached": f": {COUNTED}",
    "stock": " on device 0",
    "uncached": " on device 0",
    "reset": " on device 0",
}


@in_cases(
    {
        "cached": {},
        "stock": {"MGPU_RT_CACHE": "off"},
        "uncached": {"MGPU_RT_CACHE": "modules,functions,streams"},
        "reset": {},
    },
    HIPSTUB_MEMORY=str(MIB),
)
def test_the_message_names_the_held_bytes_if_they_are_counted(mgpu: Mgpu, case: str) -> None:
    assert alloc(mgpu, HELD) != mgpu.null
    if case == "reset":
        mgpu.stub.hipDeviceReset()
        assert alloc(mgpu, HELD) != mgpu.null
    mgpu.stderr()
    assert alloc(mgpu, MIB) == mgpu.null
    lines = mgpu.stderr().splitlines()
    assert lines[1:] == [f"mgpu_rt: no device memory for 1048576 bytes{MESSAGES[case]}"]


@in_child(HIPSTUB_DEVICES="2", **SMALL)
def test_memory_is_the_devices_that_it_leaves(mgpu: Mgpu) -> None:
    """The out-of-memory function changes the thread's current device; HIP then allocates on the new
    device."""
    held = [alloc(mgpu, 600 * KIB)]

    def change_device(_device: int, _size: int) -> None:
        mgpu.MemFree(held.pop(), mgpu.null)
        mgpu.SetDefaultDevice(1)

    ask(mgpu, change_device)
    assert alloc(mgpu, MIB) != mgpu.null
    said = mgpu.stats()["memory"]
    assert (said["0"]["reserved"], said["1"]["reserved"]) == (0, MIB)


@in_child(HIPSTUB_DEVICES="2", **SMALL)
def test_a_failed_allocation_leaves_hips_error_beside_other_devices(mgpu: Mgpu) -> None:
    """With several devices the library asks HIP for the current device. This successful query
    clears the error of the failed allocation."""
    assert alloc(mgpu, 2 * MIB) == mgpu.null
    assert mgpu.stub.hipPeekAtLastError() == 2
    ask(mgpu, lambda _device, _size: None)
    assert alloc(mgpu, 2 * MIB) == mgpu.null
    assert mgpu.stub.hipPeekAtLastError() == 2


@in_child(**SMALL)
def test_threads_are_asked_each_for_itself(mgpu: Mgpu) -> None:
    both, asked = threading.Barrier(2), []

    def wait_for_the_other(_device: int, size: int) -> None:
        asked.append(size)
        both.wait(60)

    ask(mgpu, wait_for_the_other)
    threads = [threading.Thread(target=alloc, args=(mgpu, size * MIB)) for size in (2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(asked) == [2 * MIB, 3 * MIB]


@in_child(**SMALL)
def test_a_graph_asks_nobody(mgpu: Mgpu) -> None:
    """While a graph is recorded, a free would become part of the graph."""
    asked = asked_and_freeing(mgpu)
    assert mgpu.lib.mgpu_rt_graph_begin() == 0
    assert alloc(mgpu, MIB) == mgpu.null
    assert mgpu.lib.mgpu_rt_graph_end() == mgpu.null
    assert asked == []
    assert alloc(mgpu, MIB) != mgpu.null


# ---- in Python ----


@in_child(**SMALL)
def test_a_function_of_pythons_is_asked(mgpu: Mgpu) -> None:
    library = mgpu_rt.load()
    held = [alloc(mgpu, 600 * KIB)]
    library.on_out_of_memory(lambda _device, _size: mgpu.MemFree(held.pop(), mgpu.null) or True)
    assert alloc(mgpu, MIB) != mgpu.null
    assert (held, mgpu.stderr()) == ([], "")
    assert alloc(mgpu, MIB) == mgpu.null  # held.pop() raises
    said = mgpu.stderr()
    assert "IndexError" in said and said.count("failed with 'hipErrorOutOfMemory'") == 1
    library.on_out_of_memory(None)
    assert alloc(mgpu, MIB) == mgpu.null
    assert "IndexError" not in mgpu.stderr()


LATE = {"HIPSTUB_LATE": "1", "HIPSTUB_ASYNC": "held"}


@in_child(**SMALL, **LATE)
def test_memory_that_comes_late_is_asked_for_again(mgpu: Mgpu) -> None:
    """HIP has freed the block, but has its memory only once a stream was found idle."""
    stream = mgpu.StreamCreate()
    block = alloc(mgpu, 600 * KIB, stream)
    mgpu.Memset32(block, 1, 64, stream)
    mgpu.MemFree(block, stream)
    assert alloc(mgpu, 700 * KIB, stream) != mgpu.null
    assert mgpu.stderr() == ""
    assert mgpu.stub.hipPeekAtLastError() == 0


@in_child(**SMALL, MGPU_RT_EXCLUSIVE="on")
def test_a_lack_of_device_memory_leaves_pinned_memory(mgpu: Mgpu) -> None:
    """HIP waits for all streams to release pinned memory, and stock's hipMalloc fails at once."""
    stream = mgpu.StreamCreate()
    block = alloc(mgpu, KIB, stream)
    mgpu.Memcpy(block, mgpu.ffi.new("char[]", KIB), KIB, stream)
    mgpu.StreamSynchronize(stream)
    assert mgpu.count("hipHostMalloc") == 1
    assert alloc(mgpu, 4 * MIB, stream) == mgpu.null
    assert alloc(mgpu, MIB, stream) == mgpu.null
    assert mgpu.count("hipHostFree") == 0
    mgpu.lib.mgpu_rt_empty_cache()
    assert mgpu.count("hipHostFree") == 1
