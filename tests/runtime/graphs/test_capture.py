"""The program captures an external stream, as with torch.cuda.graph, CuPy or
hipStreamBeginCapture."""

from __future__ import annotations

from tests.support.child import BACKENDS, Mgpu, in_child
from tests.support.graphs import (
    GLOBAL,
    KIB,
    THREAD_LOCAL,
    Capture,
    allocate_and_fill,
    first,
)
from tests.support.images import code_object
from tests.support.known import KERNEL, forum


@in_child(HIPSTUB_DEVICES="2", HIPSTUB_REUSE="1")
def test_memory_of_other_code_under_the_address_of_a_captured_block_is_freed(mgpu: Mgpu) -> None:
    """The program has freed the block by calling HIP, which has put memory of another device
    there."""
    capture = Capture(mgpu)
    with capture():
        block = mgpu.MemAlloc(KIB, capture.stream, False)
    assert mgpu.stub.hipFree(mgpu.for_stub(block)) == 0
    mgpu.SetDefaultDevice(1)
    own = mgpu.stub_ffi.new("void **")
    assert mgpu.stub.hipMalloc(own, KIB) == 0
    assert mgpu.from_stub(own[0]) == block
    before = mgpu.stub.hipstub_live(b"allocations")
    mgpu.MemFree(block, mgpu.null)
    assert mgpu.stub.hipstub_live(b"allocations") == before - 1
    assert mgpu.stderr() == ""
    assert mgpu.stub.hipstub_misuse() == 0


@in_child()
def test_a_capture_reuses_its_blocks(mgpu: Mgpu) -> None:
    """Blocks are reused in the order of the stream. The next capture does not get the blocks of the
    earlier capture."""
    capture = Capture(mgpu)
    used = []
    for _ in range(2):
        with capture():
            for _ in range(3):
                used.append(allocate_and_fill(mgpu, capture.stream, 5))
                mgpu.MemFree(used[-1], capture.stream)
    assert len(set(used)) == 2 and used[0] == used[1] == used[2]


@in_child(HIPSTUB_MEMORY=str(140 * KIB))
def test_a_capture_gets_blocks_of_the_exact_size(mgpu: Mgpu) -> None:
    """Only the captured graph uses the memory, so no other size needs it later."""
    capture = Capture(mgpu)
    with capture():
        block = mgpu.MemAlloc(132 * KIB, capture.stream, False)
        mgpu.MemFree(block, capture.stream)
        assert mgpu.MemAlloc(130 * KIB, capture.stream, False) == block != mgpu.null
    assert mgpu.stderr() == ""


@in_child(backends=BACKENDS)
def test_a_capture_waits_for_nothing(mgpu: Mgpu) -> None:
    """A lowered function waits, and the capture continues, even in the strictest mode."""
    capture = Capture(mgpu)
    with capture(GLOBAL):
        stream = mgpu.StreamCreate()
        assert stream == capture.stream
        block = allocate_and_fill(mgpu, stream, 5)
        mgpu.StreamSynchronize(stream)
        event = mgpu.EventCreate()
        mgpu.EventRecord(event, stream)
        mgpu.StreamWaitEvent(stream, event)
        mgpu.EventSynchronize(event)
        mgpu.EventDestroy(event)
        mgpu.Memset32(block, 6, 1, stream)
        mgpu.StreamSynchronize(stream)
        mgpu.StreamDestroy(stream)
    capture.replay()
    assert first(mgpu, block) == 6
    assert mgpu.stderr() == ""


@in_child(HIPSTUB_VERSION="60000000")
def test_a_module_unloaded_in_a_capture_stays_loaded(mgpu: Mgpu) -> None:
    """Other loads may use the module, so HIP does not unload it. HIP also keeps a module with
    globals loaded, although no other load uses that module."""
    capture = Capture(mgpu)
    kernels = {"forum": KERNEL, "globals": "count"}
    for program, kernel in kernels.items():
        image = mgpu.image(code_object(program))
        with capture():
            for _ in range(2):
                module = mgpu.load(image)
                mgpu.launch(mgpu.function(module, kernel), capture.stream)
                mgpu.StreamSynchronize(capture.stream)
                mgpu.ModuleUnload(module)
    assert mgpu.count("hipModuleLoadData") == 3
    mgpu.lib.mgpu_rt_empty_cache()
    assert mgpu.count("hipModuleUnload") == 0
    assert mgpu.stderr() == ""


@in_child(backends=("softgpu",))
def test_a_release_that_leaves_launches_out_says_so_once(mgpu: Mgpu) -> None:
    """HIP 5.2.3 does not capture launches, but runs each launch at once."""
    capture = Capture(mgpu)
    function = forum(mgpu)
    assert mgpu.stub.hipStreamBeginCapture(capture.own, THREAD_LOCAL) == 0
    for _ in range(2):
        mgpu.launch(function, capture.stream)
    assert mgpu.stderr().count("is being captured, but this release of HIP") == 1
