"""Streams and events: which caller gets a destroyed stream or event, and which work a wait
covers."""

from __future__ import annotations

from tests.proofs.programs.script import (
    EVENT,
    HIP,
    NULL,
    REGISTERED,
    STREAM,
    WORDS,
    Group,
    Script,
    filled,
)

streams = Group("streams", alone=True)
others = Group("streams-others")
#: The library does not ask NVIDIA's driver whether other code left a stream busy
#: (streams/streams_pool.h).
left_busy = Group("streams-left-busy", amd=True)


def idle(p: Script) -> int:
    """Returns a new stream without pending work."""
    stream = p.stream()
    p.at_work(stream, "done")
    return stream


# ---- streams -------------------------------------------------------------------------------------


@streams
def a_wait_covers_no_first_work_of_another_thread(p: Script) -> None:
    """The process plays this program first, because no thread of the process may have submitted
    earlier work."""
    p.threads = 2
    block, stream = p.alloc(NULL), p.stream()
    p.fill(block, 1, stream)
    p.sync(stream)
    p.step("post", 1)
    p.step("await", 2)
    p.unstream(stream)
    idle(p)
    p.step("let", 1)
    p.thread = 1
    p.step("await", 1)
    p.hold(stream)
    p.fill(block, 2, stream)
    p.step("post", 2)


@streams
def a_stream_at_work_is_nobody_elses(p: Script) -> None:
    first = p.stream()
    block = p.alloc(NULL)
    held = p.hold(first)
    p.fill(block, 7, first)
    p.unstream(first)
    second = idle(p)
    p.let(held)
    p.unstream(second)


@streams
def a_wait_covers_no_later_work_of_another_thread(p: Script) -> None:
    """The second thread submits work while the first thread waits."""
    p.threads = 2
    block, stream = p.alloc(NULL), p.stream()
    held = p.hold(stream)
    p.fill(block, 1, stream)
    p.step("post", 1)
    p.sync(stream)
    p.step("await", 2)
    p.unstream(stream)
    idle(p)
    p.step("let", held + 1)
    p.thread = 1
    p.step("await", 1)
    p.step("nap", 15)
    second = p.hold(stream)
    p.fill(block, 2, stream)
    p.let(held)
    p.step("post", 2)
    assert second == held + 1


@left_busy
def a_stream_that_others_left_busy_is_nobody_elses(p: Script) -> None:
    first = p.stream()
    p.sync(first)
    held = p.hold(first)
    p.unstream(first)
    idle(p)
    p.let(held)


@others
def a_wait_covers_work_of_others(p: Script) -> None:
    stream, host = p.stream(), p.pinned()
    p.sync(stream)
    p.arrive(host, 7, stream, who=HIP)
    p.sync(stream)
    p.see(host, filled(7))
    p.free(host, NULL, 3)


@streams
def a_wait_covers_work_on_a_lent_stream(p: Script) -> None:
    """Other code may have submitted work to a lent stream, so the library waits for the stream even
    with MGPU_RT_EXCLUSIVE=on."""
    own, host = p.stream(1), p.pinned()
    p.lend(own)
    stream = p.stream()
    p.same(STREAM, own, stream, "same")
    p.sync(stream)
    p.arrive(host, 7, stream, who=HIP)
    p.sync(stream)
    p.see(host, filled(7))
    p.unstream(stream)
    p.lend(NULL)
    p.fill(host, 8, own)  # no call has destroyed the stream
    p.sync(own)
    p.see(host, filled(8))
    p.unstream(own, HIP)
    p.free(host, NULL, 3)


@streams
def a_stream_of_the_librarys_that_is_lent_stays(p: Script) -> None:
    ours, block = p.stream(), p.alloc(NULL)
    p.lend(ours)
    for _ in range(2):
        stream = p.stream()
        p.same(STREAM, ours, stream, "same")
        p.unstream(stream)
    p.fill(block, 7, ours)
    p.lend(NULL)
    second = p.stream()
    p.same(STREAM, ours, second, "different")
    p.read(block, ours, filled(7))
    p.unstream(ours)


@others
def a_stream_with_other_flags_is_another_one(p: Script) -> None:
    """The program destroys a stream by calling HIP. HIP may then give the stream's handle to a new
    stream with other flags."""
    for kept in (0, 1):
        ours = p.stream()
        more = p.streams(kept)
        gone = p.name(STREAM, ours)
        p.unstream(ours, HIP)
        foreign = p.again(STREAM, gone, 1)
        p.unstream(foreign)
        for stream in more:
            p.unstream(stream)
        for stream in p.streams(3):
            p.step("flags", stream, says="flags 0")
            p.unstream(stream)


@others
def a_stream_at_an_old_address_is_another_one(p: Script) -> None:
    ours, block = p.stream(), p.alloc(NULL)
    gone = p.name(STREAM, ours)
    p.unstream(ours)
    p.step("empty")
    foreign = p.again(STREAM, gone)
    p.fill(block, 7, foreign)
    p.sync(foreign)
    p.read(block, foreign, filled(7))
    p.unstream(foreign)


# ---- events --------------------------------------------------------------------------------------


@others
def an_event_that_hip_has_back_is_another_one(p: Script) -> None:
    event, stream = p.event(), p.stream()
    gone = p.name(EVENT, event)
    p.unevent(event)
    p.step("empty")
    foreign = p.again(EVENT, gone)
    mine = p.event()
    p.same(EVENT, foreign, mine, "different")
    for each in (foreign, mine):
        p.record(each, stream)
        p.sync_event(each)
        p.unevent(each)


# ---- waits that are put off (MGPU_RT_SYNC=lazy) --------------------------------------------------

#: The library postpones a process's waits only if the process has never had two streams.
waits = Group("waits", alone=True)


@waits
def work_elsewhere_waits_for_a_wait_that_was_put_off(p: Script) -> None:
    first, own = p.stream(), p.stream(2)
    block, out = p.alloc(NULL), p.alloc(NULL)
    for value in (7, 8):
        p.hold(first, 30)
        p.fill(block, value, first)
        p.sync(first)
        p.copy(out, block, own)
        p.read(out, own, filled(value))
    p.unstream(first)
    p.unstream(own, HIP)


@waits
def memory_that_the_host_can_see_is_waited_for(p: Script) -> None:
    stream, host = p.stream(), p.new("buffer")
    p.step("malloc", REGISTERED, host, 4 * WORDS, NULL, 0, says="ok")
    p.step("hostset", host, WORDS, 5)
    p.arrive(host, 7, stream)
    p.sync(stream)
    p.see(host, filled(7))
    p.free(host, NULL, REGISTERED)
    p.unstream(stream)


@waits
def memory_of_a_wait_that_was_put_off_is_nobody_elses(p: Script) -> None:
    stream, own = p.stream(), p.stream(2)
    block = p.alloc(stream)
    held = p.hold(stream, 30)
    p.fill(block, 7, stream)
    p.sync(stream)
    p.free(block, stream)
    other = p.alloc(NULL)
    p.fill(other, 9, own, who=HIP)
    p.sync(own, HIP)
    p.let(held)
    p.sync(stream)
    p.read(other, own, filled(9), who=HIP)
    p.free(other, NULL)
    p.unstream(stream)
    p.unstream(own, HIP)


@waits
def a_second_stream_waits_for_a_wait_that_was_put_off(p: Script) -> None:
    first = p.stream()
    block = p.alloc(NULL)
    p.hold(first, 30)
    p.fill(block, 7, first)
    p.sync(first)
    second = p.stream()
    p.at_work(first, "done")
    p.unstream(first)
    p.unstream(second)
