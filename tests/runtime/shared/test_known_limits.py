"""Tests that each cache has a bound, releases memory when the program needs memory, and finds an
entry without a search."""

from __future__ import annotations

import os
from collections.abc import Callable

from tests.support.child import Mgpu, in_cases, in_child
from tests.support.images import code_object
from tests.support.known import forum

KIB = 1 << 10


def distinct(number: int) -> bytes:
    """Returns a different image for each number: the code is equal, and e_ident's padding contains
    the number."""
    image = bytearray(code_object("forum"))
    at = image.index(b"AMDGPU\0") - 12  # the note that names the metadata; HIP's stub ignores it
    image[8:16] = number.to_bytes(8, "little")  # e_ident's padding, which has no meaning
    assert at > 0
    return bytes(image)


# ---- 4: the cache returns memory to HIP when the program needs it ----


def _fails_once(mgpu: Mgpu, function: str, answer: str = "2") -> None:
    stream = mgpu.StreamCreate()
    mgpu.MemFree(mgpu.MemAlloc(KIB, stream, False), stream)
    mgpu.lib.mgpuMemAlloc(KIB, stream, False)
    mgpu.MemFree(mgpu.MemAlloc(2 * KIB, stream, False), stream)
    nth = mgpu.count(function) + 1
    assert mgpu.stub.hipstub_set_fault(f"{function}:{nth}:{answer}".encode()) == 0


def _load(mgpu: Mgpu, chip: str | None = None):
    return mgpu.load(mgpu.image(code_object("forum", chip=chip)))


def _launch(mgpu: Mgpu, memory: int = 0) -> bool:
    """Launches a kernel with dynamic workgroup memory."""
    null = mgpu.null
    mgpu.LaunchKernel(forum(mgpu), 1, 1, 1, 1, 1, 1, memory, null, null, null, 0)
    return True


def _launch_cooperative(mgpu: Mgpu, memory: int) -> None:
    null = mgpu.null
    mgpu.LaunchKernelCooperative(forum(mgpu), 1, 1, 1, 0, 0, 0, 1, 1, 1, memory, null, null, null)


#: Calls of HIP, the number of their error, and the calls of the program that make them. HIP 5.7.1
#: may report a load's lack of memory as error 303, and HIP 6.4.3 as error 209.
TRIED_AGAIN: dict[str, tuple[str, str, Callable[[Mgpu], object]]] = {
    "load": ("hipModuleLoadData", "2", _load),
    "load-5.7.1": ("hipModuleLoadData", "303", _load),
    "load-6.4.3": ("hipModuleLoadData", "209", _load),
    "shared": ("hipMallocManaged", "2", lambda mgpu: mgpu.MemAlloc(KIB, mgpu.null, True)),
    "event": ("hipEventCreateWithFlags", "2", lambda mgpu: mgpu.EventCreate()),
    "stream": ("hipStreamCreate", "2", lambda mgpu: mgpu.StreamCreate()),
    "launch": ("hipModuleLaunchKernel", "2", _launch),
}


@in_cases(tuple(TRIED_AGAIN))
def test_04_a_call_without_memory_is_tried_again(mgpu: Mgpu, case: str) -> None:
    function, error, call = TRIED_AGAIN[case]
    _fails_once(mgpu, function, error)
    assert call(mgpu)
    assert mgpu.stderr() == ""


#: Calls that HIP refuses for another reason. HIP 5.2.3 refuses an image for another GPU by error
#: 209, and HIP 5.7.1 by 303. HIP 5 refuses too much workgroup memory by the error of a lack of
#: device memory.
REFUSED: dict[str, tuple[str, str, Callable[[Mgpu], object]]] = {
    "event": ("hipEventCreateWithFlags", "1", lambda mgpu: mgpu.EventCreate()),
    "image-5.2.3": ("hipModuleLoadData", "209", lambda mgpu: _load(mgpu, "gfx908")),
    "image-5.7.1": ("hipModuleLoadData", "303", lambda mgpu: _load(mgpu, "gfx908")),
    "workgroup": ("hipModuleLaunchKernel", "2", lambda mgpu: _launch(mgpu, 65537)),
    "cooperative": (
        "hipModuleLaunchCooperativeKernel",
        "2",
        lambda mgpu: _launch_cooperative(mgpu, 65537),
    ),
}


@in_cases(tuple(REFUSED))
def test_04_an_error_that_is_no_shortage_costs_the_cache_nothing(mgpu: Mgpu, case: str) -> None:
    """HIP gets the call once."""
    function, error, call = REFUSED[case]
    _fails_once(mgpu, function)
    assert mgpu.stub.hipstub_set_fault(f"{function}:*:{error}".encode()) == 0
    made, freed = mgpu.count(function), mgpu.count("hipFree")
    call(mgpu)
    assert (mgpu.count(function), mgpu.count("hipFree")) == (made + 1, freed)
    assert "failed with" in mgpu.stderr()


# ---- 5: streams ----------------------------------------------------------------------------------


@in_child(MGPU_RT_STREAM_LIMIT="8")
def test_05_streams_that_nobody_holds_are_bounded(mgpu: Mgpu) -> None:
    for _ in range(5):
        streams = [mgpu.StreamCreate() for _ in range(100)]
        for stream in streams:
            mgpu.StreamDestroy(stream)
        assert mgpu.stub.hipstub_live(b"streams") <= 8
    assert mgpu.stub.hipstub_misuse() == 0


@in_child(MGPU_RT_STREAM_LIMIT="8", HIPSTUB_ASYNC="held")
def test_05_streams_destroyed_with_work_pending_are_bounded(mgpu: Mgpu) -> None:
    function = forum(mgpu)
    for _ in range(200):
        stream = mgpu.StreamCreate()
        mgpu.launch(function, stream)
        mgpu.StreamDestroy(stream)
        assert mgpu.stub.hipstub_live(b"streams") <= 9


@in_child(HIPSTUB_VERSION="70253211", HIPSTUB_ASYNC="0")
def test_05_an_error_that_is_pending_changes_nothing(mgpu: Mgpu) -> None:
    """HIP 7 keeps an error until the program reads the error; the library caches streams
    nevertheless."""
    function = forum(mgpu)
    mgpu.stub.hipSetDevice(99)
    for _ in range(50):
        stream = mgpu.StreamCreate()
        mgpu.launch(function, stream)
        mgpu.StreamDestroy(stream)
        mgpu.stub.hipDeviceSynchronize()
    assert mgpu.count("hipStreamCreate") <= 3


# ---- 8: modules ----------------------------------------------------------------------------------


@in_child(MGPU_RT_MODULE_LIMIT="64K", HIPSTUB_ASYNC="held")
def test_08_one_leaked_stream_does_not_stop_eviction(mgpu: Mgpu) -> None:
    mgpu.launch(forum(mgpu), mgpu.StreamCreate())
    for number in range(300):
        mgpu.ModuleUnload(mgpu.load(mgpu.image(distinct(number))))
    assert mgpu.stub.hipstub_live(b"modules") * len(distinct(0)) < 192 * KIB
    os._exit(0)  # exit would wait for the kernel


# ---- 9: pinned memory ----------------------------------------------------------------------------


@in_child()
def test_09_pinned_memory_has_one_bound_for_the_process(mgpu: Mgpu) -> None:
    out = mgpu.ffi.new("char[]", 64 * KIB)
    for _ in range(100):
        stream = mgpu.StreamCreate()  # leaked
        block = mgpu.MemAlloc(64 * KIB, stream, False)
        mgpu.Memcpy(block, out, 64 * KIB, stream)
        mgpu.Memcpy(out, block, 64 * KIB, stream)
    assert mgpu.count("hipHostMalloc") <= 17  # and the one that watches the device
    assert mgpu.stderr() == ""


# ---- 18: limits ----------------------------------------------------------------------------------


@in_child(MGPU_RT_MODULE_LIMIT="8M")
def test_18_the_limit_counts_what_a_module_costs(mgpu: Mgpu) -> None:
    """For a module of 4.4 KB, the limit also counts 38 KB in HIP and the library's own memory. So 8
    MB hold 160 such modules. The test allows 20 modules more."""
    for number in range(1000):
        mgpu.ModuleUnload(mgpu.load(mgpu.image(distinct(number))))
    assert mgpu.stub.hipstub_live(b"modules") <= 160 + 20
    assert mgpu.stats()["cache"]["modules"]["evictions"] >= 1000 - 180


@in_child()
def test_18_the_default_limit_holds_a_network(mgpu: Mgpu) -> None:
    images = [mgpu.image(distinct(number)) for number in range(600)]
    for _ in range(3):
        for image in images:
            mgpu.ModuleUnload(mgpu.load(image))
    assert mgpu.count("hipModuleLoadData") == len(images)
    assert mgpu.stats()["cache"]["modules"]["evictions"] == 0
