"""The program captures an external stream, as with torch.cuda.graph, CuPy or
hipStreamBeginCapture."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.support import recordings
from tests.support.child import Mgpu, in_child
from tests.support.folders import in_folder
from tests.support.images import code_object
from tests.support.known import KERNEL, forum

KIB = 1024
GLOBAL, THREAD_LOCAL, RELAXED = range(3)


class Capture:
    """An external stream that the program created, and the graph that the program captures on this
    stream."""

    def __init__(self, mgpu: Mgpu) -> None:
        self.mgpu = mgpu
        self.own = self._out()
        assert mgpu.stub.hipStreamCreate(self.own) == 0
        self.stream = mgpu.from_stub(self.own[0], "hipStream_t")
        assert mgpu.lib.mgpu_rt_use_stream(self.stream) == 0
        self.graph, self.executable = self._out(), self._out()

    def _out(self):
        return self.mgpu.stub_ffi.new("void **")

    @contextmanager
    def __call__(self, mode: int = THREAD_LOCAL) -> Iterator[None]:
        stub = self.mgpu.stub
        assert stub.hipStreamBeginCapture(self.own[0], mode) == 0
        yield
        assert stub.hipStreamEndCapture(self.own[0], self.graph) == 0
        null = self.mgpu.stub_ffi.NULL
        assert stub.hipGraphInstantiate(self.executable, self.graph[0], null, null, 0) == 0

    def replay(self) -> None:
        assert self.mgpu.stub.hipGraphLaunch(self.executable[0], self.own[0]) == 0
        assert self.mgpu.stub.hipStreamSynchronize(self.own[0]) == 0

    def return_stream(self) -> None:
        assert self.mgpu.lib.mgpu_rt_use_stream(self.mgpu.null) == 0


def first(mgpu: Mgpu, block) -> int:
    """Reads device memory by calling HIP directly; returns the first word."""
    word = mgpu.stub_ffi.new("int *")
    assert mgpu.stub.hipMemcpy(word, mgpu.for_stub(block), 4, 4) == 0
    return word[0]


def allocate_and_fill(mgpu: Mgpu, stream, value: int):
    block = mgpu.MemAlloc(KIB, stream, False)
    mgpu.Memset32(block, value, KIB // 4, stream)
    return block


@in_child(backends=("stub", "softgpu"))
def test_a_block_freed_in_a_capture_serves_nobody_else(mgpu: Mgpu) -> None:
    """The block came from the cache. Each replay of the captured graph writes to the block."""
    capture = Capture(mgpu)
    block = mgpu.MemAlloc(KIB, capture.stream, False)
    with capture():
        mgpu.Memset32(block, 5, KIB // 4, capture.stream)
        mgpu.MemFree(block, capture.stream)
    mine = allocate_and_fill(mgpu, capture.stream, 9)
    mgpu.StreamSynchronize(capture.stream)
    capture.replay()
    assert first(mgpu, mine) == 9
    assert first(mgpu, block) == 5
    assert mgpu.stderr() == ""


@in_child(backends=("stub", "softgpu"))
def test_a_block_of_a_capture_that_is_freed_later_serves_nobody_else(mgpu: Mgpu) -> None:
    """The program frees some blocks on the captured stream, and others on a stream of the
    library."""
    capture = Capture(mgpu)
    with capture():
        blocks = [allocate_and_fill(mgpu, capture.stream, 5) for _ in range(2)]
    mgpu.MemFree(blocks[0], capture.stream)
    capture.return_stream()
    ours = mgpu.StreamCreate()
    mgpu.MemFree(blocks[1], ours)
    mgpu.MemFree(mgpu.MemAlloc(64 * KIB, mgpu.null, False), mgpu.null)  # this waits for the device
    mine = [allocate_and_fill(mgpu, ours, 9) for _ in range(3)]
    mgpu.StreamSynchronize(ours)
    capture.replay()
    assert [first(mgpu, block) for block in mine] == [9, 9, 9]
    mgpu.MemFree(mgpu.ffi.cast("char *", blocks[0]) + 64, ours)  # HIP 5.2.3 would free the block
    assert "which was freed before" in mgpu.stderr()
    mgpu.MemFree(blocks[0], ours)
    assert "'hipFree(ptr)' failed" in mgpu.stderr()


def counted(mgpu: Mgpu) -> tuple[int, int]:
    """Returns the number of bytes that the program holds, and the number of blocks in the cache."""
    memory = recordings.stats("stats.json")["memory"]["0"]
    assert memory == mgpu.stats()["memory"]["0"]
    return memory["allocated"], memory["cached_blocks"]


@in_child(policies=("builtin",), MGPU_RT_STATS="stats.json")
@in_folder
def test_a_block_of_a_capture_is_counted_while_the_program_holds_it(mgpu: Mgpu) -> None:
    capture = Capture(mgpu)
    with capture():
        block = mgpu.MemAlloc(KIB, capture.stream, False)
        assert counted(mgpu) == (KIB, 0)
        mgpu.MemFree(block, capture.stream)
        assert counted(mgpu) == (0, 1)
        assert mgpu.MemAlloc(KIB, capture.stream, False) == block
        assert counted(mgpu) == (KIB, 0)
    mgpu.MemFree(block, capture.stream)
    assert counted(mgpu) == (0, 1)


@in_child(backends=("stub", "softgpu"))
def test_a_capture_has_blocks_of_its_own(mgpu: Mgpu) -> None:
    """Memory in the pool may have a new owner when the graph runs."""
    capture = Capture(mgpu)
    kept = mgpu.MemAlloc(KIB, capture.stream, False)
    mgpu.MemFree(kept, capture.stream)
    with capture():
        block = allocate_and_fill(mgpu, capture.stream, 5)
        mgpu.MemFree(block, capture.stream)
    mine = allocate_and_fill(mgpu, capture.stream, 9)
    mgpu.StreamSynchronize(capture.stream)
    assert block not in (kept, mine)
    capture.replay()
    assert first(mgpu, mine) == 9
    assert mgpu.stderr() == ""


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


@in_child(backends=("stub", "softgpu"))
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


@in_child()
def test_waits_come_back_after_a_capture(mgpu: Mgpu) -> None:
    capture = Capture(mgpu)
    with capture():
        pass
    waits = mgpu.count("hipStreamSynchronize")
    mgpu.Memset32(mgpu.MemAlloc(KIB, capture.stream, False), 1, 1, capture.stream)
    mgpu.StreamSynchronize(capture.stream)
    assert mgpu.count("hipStreamSynchronize") == waits + 1


@in_child(HIPSTUB_ASYNC="held")
def test_a_capture_waits_for_an_earlier_event(mgpu: Mgpu) -> None:
    capture = Capture(mgpu)
    block = allocate_and_fill(mgpu, capture.stream, 5)
    event = mgpu.EventCreate()
    mgpu.EventRecord(event, capture.stream)
    with capture(RELAXED):
        mgpu.EventSynchronize(event)
        assert mgpu.pending(capture.stream) == 0
    mgpu.MemFree(block, capture.stream)


@in_child(backends=("stub", "softgpu"))
def test_a_capture_has_hips_own_copies(mgpu: Mgpu) -> None:
    """Pinned memory may change before a replay, so a replayed copy through pinned memory would read
    wrong bytes."""
    capture = Capture(mgpu)
    source = mgpu.ffi.new("int[256]", [3] * 256)
    target = mgpu.ffi.new("int[256]")
    block = mgpu.MemAlloc(KIB, capture.stream, False)
    with capture():
        mgpu.Memcpy(block, source, KIB, capture.stream)
        mgpu.StreamSynchronize(capture.stream)
        mgpu.Memcpy(target, block, KIB, capture.stream)
    source[0] = 4
    capture.replay()
    assert (target[0], target[1]) == (4, 3)
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


@in_child(MGPU_RT_CACHE="off")
def test_a_capture_with_the_cache_off_is_as_with_stock(mgpu: Mgpu) -> None:
    """With the cache off, an unload waits and therefore ends the capture."""
    capture = Capture(mgpu)
    assert mgpu.stub.hipStreamBeginCapture(capture.own[0], THREAD_LOCAL) == 0
    mgpu.StreamSynchronize(capture.stream)
    assert "hipErrorStreamCaptureUnsupported" in mgpu.stderr()


@in_child(backends=("softgpu",))
def test_a_release_that_leaves_launches_out_says_so_once(mgpu: Mgpu) -> None:
    """HIP 5.2.3 does not capture launches, but runs each launch at once."""
    capture = Capture(mgpu)
    function = forum(mgpu)
    assert mgpu.stub.hipStreamBeginCapture(capture.own[0], THREAD_LOCAL) == 0
    for _ in range(2):
        mgpu.launch(function, capture.stream)
    assert mgpu.stderr().count("is being captured, but this release of HIP") == 1
