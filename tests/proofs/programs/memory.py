"""Device memory: which caller gets a freed block, and when."""

from __future__ import annotations

from tests.proofs.programs.script import (
    BUFFER,
    HIP,
    LONG_MS,
    NULL,
    PINNED,
    STREAM,
    WORDS,
    Group,
    Script,
    content,
    filled,
    pattern,
)

memory = Group("memory", alone=True)
shared = Group("shared", alone=True, known=True)
#: In these programs, other code calls HIP.
others = Group("memory-others")


def taken_early(p: Script, freed_on: int, stream: int, held: int, says: str = filled(9)) -> None:
    """Allocates a new block and writes to the new block on `stream`. Then releases the held stream,
    whose work uses the freed block, and reads the new block."""
    other = p.alloc(freed_on)
    p.fill(other, 9, stream)
    p.sync(stream)
    p.let(held)
    p.sync(NULL, 3)
    p.read(other, stream, says)
    p.free(other, stream)


def freed_at_work(p: Script, freed_on: int, busy: int) -> int:
    """Frees a new block while a held stream fills it, and returns the hold."""
    block = p.alloc(freed_on)
    held = p.hold(busy)
    p.fill(block, 7, busy)
    p.free(block, freed_on)
    return held


@memory
def a_freed_block_waits_for_streams_of_the_program(p: Script) -> None:
    """The program creates these streams through HIP, and lends some of them to the library during
    the fill (mgpu_rt_use_stream). The process plays this program first, because the library would
    also wait for the work of earlier programs."""
    first = p.stream()
    for who in (2, 1):
        for is_lent in (True, False):
            own = p.stream(who)
            block = p.alloc(first)
            held = p.hold(own)
            if is_lent:
                p.lend(own)
            p.fill(block, 7, own)
            if is_lent:
                p.lend(NULL)
            p.free(block, first)
            taken_early(p, first, first, held)
            p.unstream(own, HIP)


@memory
def a_freed_block_waits_for_its_stream(p: Script) -> None:
    first, second = p.streams(2)
    for _ in range(2):  # a synchronise before the second free does not count
        held = freed_at_work(p, first, first)
        taken_early(p, second, second, held)


@memory
def a_block_freed_without_a_stream_is_idle(p: Script) -> None:
    busy, other = p.streams(2)
    held = freed_at_work(p, NULL, busy)
    taken_early(p, other, other, held)


@memory
def a_block_freed_on_a_destroyed_stream_is_idle(p: Script) -> None:
    busy, other, gone = p.streams(3)
    block = p.alloc(gone)
    dead = p.name(STREAM, gone)
    held = p.hold(busy)
    p.fill(block, 7, busy)
    p.unstream(gone)
    p.free(block, dead)
    taken_early(p, other, other, held)


@memory
def a_freed_block_waits_for_the_streams_of_others(p: Script) -> None:
    first, second, third = p.streams(3)
    block = p.alloc(first)
    p.fill(block, 1, first)
    held = p.hold(second)
    p.fill(block, 7, second)
    p.free(block, first)
    taken_early(p, first, first, held)
    # A third stream allocates memory while the first stream still works on the freed block.
    block = p.alloc(first)
    held = p.hold(first)
    p.fill(block, 7, first)
    p.fill(block, 8, second)
    p.free(block, first)
    p.sync(second)
    taken_early(p, third, third, held)
    # Each of several streams delays the reuse of the block.
    for last, done in ((second, third), (third, second)):
        block = p.alloc(first)
        held = p.hold(last)
        for busy in (second, third):
            p.fill(block, 7, busy)
        p.free(block, first)
        p.sync(done)
        taken_early(p, first, first, held)


@memory
def a_wait_before_more_work_does_not_count(p: Script) -> None:
    first, second = p.streams(2)
    block = p.alloc(first)
    p.fill(block, 1, second)
    p.sync(second)
    held = p.hold(second)
    p.fill(block, 7, second)
    p.free(block, first)
    taken_early(p, first, first, held)


@memory
def a_stream_destroyed_at_work_is_waited_for(p: Script) -> None:
    first, second, third = p.streams(3)
    block = p.alloc(first)
    held = p.hold(second)
    p.fill(block, 7, second)
    p.unstream(second)
    p.free(block, first)
    taken_early(p, first, third, held)


@memory
def a_freed_block_waits_for_the_null_stream(p: Script) -> None:
    first, own = p.stream(), p.stream(2)
    held = freed_at_work(p, first, NULL)
    taken_early(p, first, own, held)
    p.unstream(own, HIP)


@memory
def work_on_the_null_stream_is_waited_for(p: Script) -> None:
    """A stream reuses a block only after the null stream's work on the block, even if the stream
    does not synchronise with the null stream."""
    own = p.stream(2)
    held = freed_at_work(p, NULL, NULL)
    taken_early(p, NULL, own, held)


@shared
def memory_that_the_host_shares_waits_for_its_stream(p: Script) -> None:
    """In the stock runtime, this memory is plain device memory, which the host may be unable to
    read."""
    stream = p.stream()
    block, source = p.alloc(NULL, shared=True), p.alloc(stream)
    p.fill(source, 7, stream)
    p.sync(stream)
    held = p.hold(stream)
    p.copy(block, source, stream)
    p.free(block, stream)
    other = p.alloc(NULL, shared=True)
    p.step("hostset", other, WORDS, 5)
    p.let(held)
    p.sync(stream)
    p.see(other, content(pattern(5)))
    p.free(other, stream)


@shared
def the_host_shares_what_was_asked_for_so(p: Script) -> None:
    stream = p.stream()
    for _ in range(2):
        asked, plain = p.alloc(NULL, shared=True), p.alloc(stream)
        # A program from LLVM 17 or older passes a stream, and an undefined value for `shared`.
        garbage = p.alloc(stream, shared=True)
        p.step("managed", asked, says="managed")
        p.step("managed", plain, says="not managed")
        p.step("managed", garbage, says="not managed")
        for block in (asked, plain, garbage):
            p.free(block, stream)
        p.sync(stream)


@memory
def a_chain_of_early_frees(p: Script) -> None:
    first, second = p.streams(2)
    kept = p.alloc(NULL, 8 * WORDS)
    for number in range(8):
        block = p.alloc(first)
        held = p.hold(second, 5)
        p.fill(block, number, second)
        p.step("copy", 0, kept, number * WORDS, block, 0, WORDS, second)
        p.free(block, first)
        again = p.alloc(first)
        p.fill(again, 0xBAD, first)
        p.free(again, first)
        p.let(held)
    p.sync(second)
    p.sync(first)
    for number in range(8):
        p.step("down", 0, kept, number * WORDS, WORDS, first, 0, says=filled(number))


@others
def memory_of_others_is_copied_in_the_order_of_the_stream(p: Script) -> None:
    stream = p.stream()
    foreign, block = p.alloc(NULL, who=HIP), p.alloc(stream)
    held = p.hold(stream)
    p.fill(foreign, 7, stream)
    p.copy(block, foreign, stream)
    p.let(held)
    p.read(block, stream, filled(7))


@others
def a_block_freed_on_a_stream_of_others_is_idle(p: Script) -> None:
    """The foreign stream has the handle of a destroyed stream of the library."""
    ours, own = p.stream(), p.stream(2)
    gone = p.name(STREAM, ours)
    block = p.alloc(ours)
    p.unstream(ours)
    p.step("empty")
    foreign = p.again(STREAM, gone)
    held = p.hold(own)
    p.fill(block, 7, own, who=HIP)
    p.free(block, foreign)
    taken_early(p, foreign, foreign, held)
    for stream in (foreign, own):
        p.unstream(stream, HIP)


@memory
def pinned_memory_is_read_in_the_order_of_the_stream(p: Script) -> None:
    stream, host = p.stream(), p.pinned()
    block = p.alloc(stream)
    held = p.hold(stream, LONG_MS)
    p.copy(block, host, stream)
    p.step("hostset", host, WORDS, 9)
    p.let(held)
    p.read(block, stream, None)
    p.free(host, NULL, PINNED)


@others
def a_smaller_block_at_the_same_address_is_another_one(p: Script) -> None:
    stream = p.stream()
    for who, sign, shared in ((HIP, 1, False), (2, -1, True)):
        block = p.alloc(NULL if shared else stream, 4 * WORDS, shared)
        gone = p.name(BUFFER, block)
        p.free(block, stream, who)
        smaller = p.again(BUFFER, gone, sign * 4 * 4 * (WORDS - 256))
        p.free(smaller, stream)
        p.sync(stream)
        large = p.alloc(NULL if shared else stream, 4 * WORDS, shared)
        p.fill(large, 3, stream, 4 * WORDS)
        p.read(large, stream, filled(3, 4 * WORDS), 4 * WORDS)


@memory
def memory_freed_twice_is_refused(p: Script) -> None:
    stream = p.stream()
    block = p.alloc(stream)
    gone = p.name(BUFFER, block)
    inside = p.name(BUFFER, block, offset=64)
    p.free(block, stream)
    for address in (gone, inside):
        p.free(p.name(BUFFER, address), stream)
        p.fails("hipFree(ptr)")
    first, second = p.alloc(stream), p.alloc(stream)
    p.same(BUFFER, first, second, "different")
    p.fill(first, 1, stream)
    p.fill(second, 2, stream)
    p.read(first, stream, filled(1))
    p.read(second, stream, filled(2))


@memory
def an_allocation_waits_for_nothing(p: Script) -> None:
    """An allocation evicts no cached block, even if the cache exceeds its limit, because an
    eviction would wait for the device."""
    stream, busy = p.streams(2)
    p.free(p.alloc(stream, 225 << 10), stream)
    held = p.hold(busy, LONG_MS)
    mine = [p.alloc(stream, (25 << 10) + 64 * number) for number in range(20)]
    p.at_work(busy, None)  # as with stock's behaviour
    p.let(held)
    for block in mine:
        p.free(block, stream)
