"""Programs that fork work to a second stream, and never wait for that stream.

A freed block may wait for the second stream. Before the library calls hipMalloc, the library asks
HIP about the second stream (csrc/runtime/streams/held.c).
"""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.support import lower, programs
from tests.support.child import BACKENDS, Mgpu, environment, in_cases, in_child, library
from tests.support.known import KERNEL, alloc, forum, program
from tests.support.patience import HANG
from tests.support.printing import print_library

KIB, MIB = 1 << 10, 1 << 20
RELAXED = 2  # HIP then allocates memory during the capture
ROUNDS = 50
FORKJOIN = Path(__file__).with_name("forkjoin.mlir")


def fork(mgpu: Mgpu, stream):
    """Returns a block that was freed on `stream` while a second stream works on the block, and the
    second stream."""
    block = alloc(mgpu, KIB, stream)
    other = mgpu.StreamCreate()
    mgpu.Memset32(block, 7, KIB // 4, other)
    mgpu.MemFree(block, stream)
    return block, other


# ---- whole programs ------------------------------------------------------------------------------


def run_forkjoin(folder: Path, backend: str, text: str, **changes: str) -> programs.Outcome:
    source = folder / "program.mlir"
    source.write_text(text)
    helper = print_library()
    built = lower.link(
        [lower.lower(source, llvm=22)],
        libraries=[library(), helper],
        rpath=[library().parent, helper.parent],
        out=folder / "program",
    )
    env = programs.run_environment(programs.Way(library()), backend, 22, "builtin", **changes)
    outcome = programs.execute([str(built)], env, stats=True)
    assert outcome.signal == 0 and outcome.stderr == ""
    if backend != "stub":  # the stub runs no kernel
        assert outcome.stdout == "5\n"
    return outcome


def peak(outcome: programs.Outcome) -> float:
    """Returns the largest amount of reserved memory, divided by the program's largest amount."""
    assert outcome.stats is not None
    memory = outcome.stats["memory"]["0"]
    return memory["peak_reserved"] / memory["peak_allocated"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_two_chains_that_join_use_their_memory_again(tmp_path: Path, backend: str) -> None:
    """MLIR creates a stream for each chain, and never destroys the streams of chains that join."""
    outcome = run_forkjoin(tmp_path, backend, FORKJOIN.read_text())
    assert 2 * ROUNDS - outcome.hip("hipMalloc") >= 94
    assert peak(outcome) <= 1.5


@pytest.mark.parametrize("waits", [True, False])
def test_chains_that_join_ask_nothing_while_hip_reports(tmp_path: Path, waits: bool) -> None:
    """Each round frees its blocks on a new stream. The next round finds them there, although the
    program has left many streams behind. If the host waits only for HIP's own copy, the library
    asks once a round whether the stream's work is done."""
    text = FORKJOIN.read_text()
    text = text if waits else text.replace("      gpu.wait [%j4]\n", "")
    outcome = run_forkjoin(tmp_path, "stub", text, HIPSTUB_TELLS="1", HIPSTUB_ASYNC="held")
    assert 2 * ROUNDS - outcome.hip("hipMalloc") >= 94
    assert outcome.hip("hipStreamQuery") <= (0 if waits else ROUNDS)
    assert outcome.hip("hipEventQuery") == 0
    assert peak(outcome) <= 1.5


@pytest.mark.parametrize("backend", BACKENDS)
def test_chains_that_join_without_a_wait_hold_little_memory(tmp_path: Path, backend: str) -> None:
    """The host waits only for the copies. The program leaves three streams behind in each round."""
    text = FORKJOIN.read_text().replace("      gpu.wait [%j4]\n", "")
    ours = run_forkjoin(tmp_path, backend, text.replace("4096xf32", "262144xf32"))
    assert peak(ours) <= 4
    assert ours.hip("hipMalloc") + ours.hip("hipFree") <= 2 * 2 * ROUNDS  # stock's calls
    assert ours.hip("hipStreamQuery") <= 2 * 2 * ROUNDS


#: Double buffering: the program waits for events, and one of the two streams is always at work.
BUFFERS = """
#include "program.h"
enum { MOST = 64 };
int main(int count, char **words) {
    const int streams = atoi(words[1]), rounds = atoi(words[2]), size = atoi(words[3]);
    void *s[MOST], *buffers[MOST] = {0}, *events[MOST] = {0};
    char *source = malloc(size);
    memset(source, 1, size);
    for (int i = 0; i < streams; i++)
        s[i] = mgpuStreamCreate();
    for (int i = 0; i < rounds; i++) {
        const int k = i % streams;
        if (events[k]) {
            mgpuEventSynchronize(events[k]);
            mgpuEventDestroy(events[k]);
            mgpuMemFree(buffers[k], s[k]);
        }
        buffers[k] = mgpuMemAlloc(size, s[k], false);
        mgpuMemcpy(buffers[k], source, size, s[k]);
        mgpuMemset32(buffers[k], i, 1024, s[k]);
        events[k] = mgpuEventCreate();
        mgpuEventRecord(events[k], s[k]);
    }
    return 0;
}
"""


@pytest.mark.parametrize("asynchronous", ["0", "500"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_double_buffering_by_events_uses_its_memory_again(
    tmp_path: Path, backend: str, asynchronous: str
) -> None:
    path = program(tmp_path, BUFFERS)
    env = environment(backend, MGPU_RT_MANAGER="off", HIPSTUB_ASYNC=asynchronous)
    outcome = programs.execute([str(path), "2", "300", str(MIB)], env, stats=True)
    assert (outcome.signal, outcome.stderr) == (0, "")
    assert outcome.hip("hipMalloc") <= 20
    asked = outcome.hip("hipStreamQuery") + outcome.hip("hipEventQuery")
    assert asked <= 300 + 2 * 300  # the program's events, and two questions for each allocation


# ---- one question --------------------------------------------------------------------------------


@in_cases({"others": {}, "tells": {"HIPSTUB_TELLS": "1"}})
def test_hip_is_asked_about_a_stream_that_the_program_holds(mgpu: Mgpu, case: str) -> None:
    """Only other code captures streams of the library."""
    stream = mgpu.StreamCreate()
    block, _ = fork(mgpu, stream)
    assert alloc(mgpu, KIB, stream) == block
    assert mgpu.counts("hipStreamQuery", "hipDeviceSynchronize", "hipStreamSynchronize") == {
        "hipStreamQuery": 1,
        "hipDeviceSynchronize": 0,
        "hipStreamSynchronize": 0,
    }
    assert case == "others" or mgpu.count("hipStreamGetCaptureInfo") == 0


@in_child()
def test_one_answer_settles_all_blocks_that_wait_for_the_stream(mgpu: Mgpu) -> None:
    stream = mgpu.StreamCreate()
    kept = [alloc(mgpu, KIB, stream) for _ in range(20)]
    other = mgpu.StreamCreate()
    mgpu.Memset32(kept[0], 7, KIB // 4, other)
    for block in kept:
        mgpu.MemFree(block, stream)
    assert {alloc(mgpu, KIB, stream) for _ in range(20)} == set(kept)
    assert mgpu.count("hipStreamQuery") == 1
    mgpu.MemFree(kept[0], stream)  # the other stream does not count as at work any more
    assert alloc(mgpu, KIB, stream) == kept[0]
    assert mgpu.count("hipStreamQuery") == 1
    mgpu.Memset32(kept[0], 7, KIB // 4, other)  # this makes the stream count again
    mgpu.MemFree(kept[0], stream)
    assert alloc(mgpu, KIB, stream) == kept[0]
    assert mgpu.count("hipStreamQuery") == 2


@in_child(HIPSTUB_ASYNC="held")
def test_a_busy_stream_gets_an_event(mgpu: Mgpu) -> None:
    """The program then submits more work to the other stream, which never becomes idle."""
    stream = mgpu.StreamCreate()
    block, other = fork(mgpu, stream)
    assert alloc(mgpu, KIB, stream) != block
    assert mgpu.counts("hipStreamQuery", "hipEventRecord") == {
        "hipStreamQuery": 1,
        "hipEventRecord": 1,
    }
    assert alloc(mgpu, KIB, stream) != block  # the library's event is pending
    waited = mgpu.EventCreate()
    mgpu.EventRecord(waited, other)
    mgpu.Memset32(mgpu.MemAlloc(MIB, other, False), 7, KIB // 4, other)
    mgpu.EventSynchronize(waited)
    assert mgpu.pending(other) > 0
    assert alloc(mgpu, KIB, stream) == block
    assert mgpu.count("hipDeviceSynchronize") == 0


@in_child(HIPSTUB_ASYNC="held")
def test_the_event_of_a_destroyed_stream_is_destroyed(mgpu: Mgpu) -> None:
    stream = mgpu.StreamCreate()
    _, other = fork(mgpu, stream)
    alloc(mgpu, KIB, stream)
    assert mgpu.stub.hipstub_live(b"events") == 1
    mgpu.StreamSynchronize(other)
    mgpu.StreamDestroy(other)
    mgpu.lib.mgpu_rt_empty_cache()
    assert mgpu.stub.hipstub_live(b"events") == 0
    _, other = fork(mgpu, stream)
    alloc(mgpu, KIB, stream)
    assert mgpu.stub.hipstub_live(b"events") == 1
    mgpu.lib.mgpu_rt_empty_cache()  # the program holds the stream
    assert mgpu.stub.hipstub_live(b"events") == 0
    alloc(mgpu, KIB, stream)
    assert mgpu.stderr() == ""


@in_cases(("6", "40"), HIPSTUB_ASYNC="held")
def test_a_streams_own_blocks_come_before_those_of_a_stream_at_work(mgpu: Mgpu, count: str) -> None:
    """A pool has places for four blocks of a size. The other stream's blocks were freed later."""
    stream, other = mgpu.StreamCreate(), mgpu.StreamCreate()
    own, others = ([alloc(mgpu, KIB, s) for _ in range(int(count))] for s in (stream, other))
    for block in own:
        mgpu.MemFree(block, stream)
    mgpu.Memset32(others[0], 7, KIB // 4, other)
    for block in others:
        mgpu.MemFree(block, other)
    assert {alloc(mgpu, KIB, stream) for _ in own} == set(own)
    assert mgpu.pending(other) == 1
    assert mgpu.count("hipMalloc") == 2 * int(count)
    assert mgpu.count("hipStreamQuery") == 0


# ---- what may not be asked -----------------------------------------------------------------------


@in_child(HIPSTUB_ASYNC="held", HIPSTUB_DESTROY_RETURNS="1", HIPSTUB_REUSE="1")
def test_a_stream_that_the_program_has_replaced_is_not_asked(mgpu: Mgpu) -> None:
    """The program has destroyed the library's stream by calling HIP, while the stream had pending
    work. HIP has returned the handle for a stream of another kind, which is idle."""
    stream = mgpu.StreamCreate()
    block, other = fork(mgpu, stream)
    assert mgpu.stub.hipStreamDestroy(mgpu.for_stub(other)) == 0
    assert mgpu.hip_stream(1) == other
    assert alloc(mgpu, KIB, stream) != block
    assert mgpu.count("hipStreamQuery") == 0


@in_child()
def test_a_captured_stream_is_not_asked(mgpu: Mgpu) -> None:
    """The program captures a stream of the library. HIP would end the capture."""
    stream = mgpu.StreamCreate()
    block, other = fork(mgpu, stream)
    graph = mgpu.stub_ffi.new("void **")
    assert mgpu.stub.hipStreamBeginCapture(mgpu.for_stub(other), RELAXED) == 0
    assert alloc(mgpu, KIB, stream) != block
    assert mgpu.stub.hipStreamEndCapture(mgpu.for_stub(other), graph) == 0
    assert mgpu.counts("hipStreamQuery", "hipEventRecord") == {
        "hipStreamQuery": 0,
        "hipEventRecord": 0,
    }
    assert alloc(mgpu, KIB, stream) == block


@in_cases({"others": {}, "word": {"MGPU_RT_EXCLUSIVE": "on"}, "tells": {"HIPSTUB_TELLS": "1"}})
def test_a_stream_is_not_asked_while_another_thread_makes_calls(mgpu: Mgpu, case: str) -> None:
    """The stream of another thread is at work at each free. If that thread waits for the stream,
    HIP answers a question about the stream only after the wait."""
    stream, other = mgpu.StreamCreate(), mgpu.StreamCreate()
    go, done = threading.Semaphore(0), threading.Semaphore(0)

    def work() -> None:
        block = mgpu.MemAlloc(MIB, other, False)
        while go.acquire(timeout=HANG):
            mgpu.Memset32(block, 7, KIB // 4, other)
            done.release()

    threading.Thread(target=work, daemon=True).start()
    for _ in range(50):
        block = alloc(mgpu, KIB, stream)
        go.release()
        assert done.acquire(timeout=HANG)
        mgpu.MemFree(block, stream)
    questions = ("hipStreamQuery", "hipEventQuery", "hipEventRecord")
    assert not any(mgpu.counts(*questions).values()), case


@in_child()
def test_an_external_stream_is_not_asked(mgpu: Mgpu) -> None:
    stream = mgpu.StreamCreate()
    block = alloc(mgpu, KIB, stream)
    external = mgpu.external_stream()
    mgpu.Memset32(block, 7, KIB // 4, external)
    mgpu.MemFree(block, stream)
    assert alloc(mgpu, KIB, stream) != block
    assert mgpu.count("hipStreamQuery") == 0


# ---- the list of streams at work ----------------------------------------------------------------


def use(mgpu: Mgpu, streams: list) -> None:
    """Submits work to each stream, and waits for it."""
    for stream in streams:
        mgpu.Memset32(alloc(mgpu, KIB, stream), 7, KIB // 4, stream)
        mgpu.StreamSynchronize(stream)


def leave(mgpu: Mgpu, stream, streams: int = 40) -> list:
    """Returns idle streams that the program holds. A free on `stream` has visited them, so they
    left the library's list."""
    left = [mgpu.StreamCreate() for _ in range(streams)]
    use(mgpu, left)
    mgpu.MemFree(alloc(mgpu, 2 * KIB, stream), stream)
    return left


@in_child(HIPSTUB_ASYNC="held")
def test_a_free_waits_for_streams_that_return(mgpu: Mgpu) -> None:
    """A fill, a copy to the device and a record of an event list the stream again."""
    stream, host, event = mgpu.StreamCreate(), mgpu.ffi.new("char[]", KIB), mgpu.EventCreate()
    submit = (
        lambda block, other: mgpu.Memset32(block, 7, KIB // 4, other),
        lambda block, other: mgpu.Memcpy(block, host, KIB, other),
        lambda _, other: mgpu.EventRecord(event, other),
    )
    for number, other in enumerate(leave(mgpu, stream)):
        block = alloc(mgpu, KIB, stream)
        submit[number % 3](block, other)
        mgpu.MemFree(block, stream)
        assert alloc(mgpu, KIB, stream) != block


@in_cases(("ours", "no-longer-external"), HIPSTUB_ASYNC="held")
def test_a_stream_at_work_stays_listed(mgpu: Mgpu, whose: str) -> None:
    stream = mgpu.StreamCreate()
    block = alloc(mgpu, MIB, stream)
    other = mgpu.StreamCreate() if whose == "ours" else mgpu.external_stream()
    mgpu.Memset32(block, 7, KIB // 4, other)
    assert mgpu.lib.mgpu_rt_use_stream(mgpu.null) == 0
    leave(mgpu, stream)
    mgpu.MemFree(block, stream)
    assert alloc(mgpu, MIB, stream) != block


@in_child()
def test_a_launch_that_began_before_its_stream_left_is_waited_for(mgpu: Mgpu) -> None:
    """A second thread has begun a launch, and the library has not recorded the launch yet."""
    begun, go, launched, ends = (threading.Event() for _ in range(4))

    @mgpu.ffi.callback("void(void **)")
    def body(_params) -> None:
        begun.set()
        go.wait(HANG)

    function, stream, other = forum(mgpu), mgpu.StreamCreate(), mgpu.StreamCreate()
    use(mgpu, [other])
    mgpu.set_kernel(KERNEL, body)

    def launch() -> None:
        mgpu.launch(function, other)
        launched.set()
        ends.wait(HANG)

    thread = threading.Thread(target=launch)
    thread.start()
    assert begun.wait(HANG)
    leave(mgpu, stream)
    block = alloc(mgpu, KIB, stream)
    go.set()
    assert launched.wait(HANG)
    mgpu.MemFree(block, stream)
    assert alloc(mgpu, KIB, stream) != block
    ends.set()
    thread.join()


# ---- why a block was not reused ------------------------------------------------------------------


@in_child(HIPSTUB_ASYNC="held", MGPU_RT_STATS="1", MGPU_RT_MEMORY_LIMIT="1M")
def test_the_statistics_say_why_hip_allocated(mgpu: Mgpu) -> None:
    stream = mgpu.StreamCreate()
    fork(mgpu, stream)
    assert made(mgpu) == {"first_use": 1}
    alloc(mgpu, KIB, stream)
    assert made(mgpu) == {"first_use": 1, "waits": 1}
    alloc(mgpu, 2 * KIB, stream)
    assert made(mgpu) == {"first_use": 1, "waits": 1, "size": 1}
    own = alloc(mgpu, 3 * KIB, stream)
    assert mgpu.stub.hipFree(mgpu.for_stub(own)) == 0
    mgpu.MemFree(own, stream)
    assert "failed with" in mgpu.stderr()
    assert made(mgpu) == {"first_use": 1, "waits": 1, "size": 2, "other_code": 1}
    large = [alloc(mgpu, MIB, stream) for _ in range(3)]
    for each in large:
        mgpu.MemFree(each, stream)
    for _ in range(3):
        alloc(mgpu, MIB, stream)
    assert made(mgpu)["limit"] >= 1


@in_child(HIPSTUB_REUSE="1", MGPU_RT_STATS="1", MGPU_RT_MEMORY_LIMIT="0")
def test_the_statistics_remember_a_size_whose_address_has_another_size(mgpu: Mgpu) -> None:
    stream, places = mgpu.StreamCreate(), set()

    def use(size: int) -> None:
        block = alloc(mgpu, size, stream)
        places.add(block)
        mgpu.MemFree(block, stream)

    for size in (KIB, 2 * KIB, 3 * KIB) * 5:
        use(size)
    assert len(places) < 3
    assert made(mgpu) == {"first_use": 3, "limit": 12}
    use(MIB)
    assert made(mgpu) == {"first_use": 4, "limit": 12}
    use(MIB // 2)  # the larger block would have served
    use(100 * KIB)  # it was too large
    use(4 * MIB)
    assert made(mgpu) == {"first_use": 6, "limit": 13}


@in_child(policies=("builtin",), HIPSTUB_MEMORY=str(4 * MIB), MGPU_RT_STATS="1")
def test_the_statistics_do_not_say_why_hip_refused(mgpu: Mgpu) -> None:
    """A request that fails allocates nothing, so it has no reason."""
    alloc(mgpu, MIB)
    for size in (2 * MIB, 1 << 50):
        for _ in range(3):
            mgpu.MemAlloc(size, mgpu.null, False)
    assert mgpu.stderr().count("failed with") == 5
    assert sum(made(mgpu).values()) == mgpu.stats()["cache"]["memory"]["misses"] == 2


def made(mgpu: Mgpu) -> dict[str, int]:
    """Returns the reasons that were counted."""
    said = mgpu.stats()["made"]
    return {reason: count for reason, count in said.items() if count}
