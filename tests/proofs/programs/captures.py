"""Graphs that a program captures on an external stream."""

from __future__ import annotations

from tests.proofs.programs.graphs import build, built, replay
from tests.proofs.programs.script import (
    HEAP,
    HIP,
    NULL,
    STREAM,
    WORDS,
    Group,
    Script,
    content,
    filled,
    pattern,
)

captures = Group("captures", known=True)
#: While a stream captures, HIP 5.7 refuses to wait for an event; later releases wait.
capture_events = Group("captures-events")

THREAD_LOCAL, RELAXED = 1, 2


def lend(p: Script) -> int:
    """Creates a stream on which the program captures. No program destroys the stream, because the
    destruction would need all streams to be idle."""
    own = p.stream(1)
    p.lend(own)
    stream = p.stream()
    p.same(STREAM, own, stream, "same")
    return own


def capture(p: Script, stream: int, mode: int = THREAD_LOCAL) -> None:
    p.step("capture", stream, mode)


def captured(p: Script, stream: int) -> int:
    graph = p.new("captured")
    p.step("captured", stream, graph)
    return graph


def launch(p: Script, graph: int, stream: int) -> None:
    p.step("launchcaptured", graph, stream)
    p.sync(stream, HIP)


@captures
def memory_freed_in_a_capture_is_nobody_elses(p: Script) -> None:
    stream = lend(p)
    block = p.alloc(stream)
    kept = p.alloc(stream, 2 * WORDS)
    p.free(kept, stream)
    capture(p, stream)
    p.fill(block, 5, stream)
    p.free(block, stream)
    graph = captured(p, stream)
    mine = [p.alloc(stream) for _ in range(2)]
    for buffer in mine:
        p.fill(buffer, 9, stream)
    p.sync(stream)
    launch(p, graph, stream)
    for buffer in mine:
        p.read(buffer, stream, filled(9))
    p.lend(NULL)


@captures
def memory_of_a_capture_is_nobody_elses(p: Script) -> None:
    """The program frees one block during the capture. After the capture, the program frees one
    block on the external stream and one block on a stream of the library."""
    stream, ours = lend(p), p.new("stream")
    kept = p.alloc(stream)
    p.free(kept, stream)
    capture(p, stream, RELAXED)
    blocks = [p.alloc(stream) for _ in range(3)]
    for block in blocks:
        p.fill(block, 5, stream)
    p.free(blocks[2], stream)
    graph = captured(p, stream)
    p.free(blocks[0], stream)
    p.lend(NULL)
    p.step("stream", 0, ours, says="ok")
    p.free(blocks[1], ours)
    p.free(p.alloc(NULL, 8 * WORDS), NULL)  # this waits for the device
    mine = [p.alloc(ours) for _ in range(4)] + [p.alloc(stream)]
    for buffer in mine:
        p.fill(buffer, 9, ours)
    p.sync(ours)
    launch(p, graph, stream)
    for buffer in mine:
        p.read(buffer, ours, filled(9))


@captures
def two_captures_share_no_memory(p: Script) -> None:
    stream, recorded = lend(p), []
    for value in (5, 6):
        capture(p, stream, RELAXED)
        block = p.alloc(stream)
        p.fill(block, value, stream)
        if value == 5:
            p.free(block, stream)
        recorded.append(captured(p, stream))
    for graph in reversed(recorded):
        launch(p, graph, stream)
    p.read(block, stream, filled(6))
    p.lend(NULL)


@captures
def copies_of_a_capture_are_of_the_replay(p: Script) -> None:
    stream, host, back = lend(p), p.new("buffer"), p.new("buffer")
    for buffer in (host, back):
        p.step("malloc", HEAP, buffer, 4 * WORDS, NULL, 0, says="ok")
    p.step("hostset", host, WORDS, 1)
    block = p.alloc(stream)
    capture(p, stream)
    p.copy(block, host, stream)
    p.copy(back, block, stream)
    graph = captured(p, stream)
    for seed in (2, 3):
        p.step("hostset", host, WORDS, seed)
        launch(p, graph, stream)
        p.see(back, content(pattern(seed)))
    p.lend(NULL)
    for buffer in (host, back):
        p.free(buffer, NULL, HEAP)


@captures
def waits_are_back_after_a_capture(p: Script) -> None:
    stream, host = lend(p), p.pinned()
    block = p.alloc(stream)
    capture(p, stream)
    p.fill(block, 1, stream)
    captured(p, stream)
    p.arrive(host, 7, stream)
    p.sync(stream)
    p.see(host, filled(7))
    p.lend(NULL)
    p.free(host, NULL, 3)


@captures
def a_capture_leaves_waits_out(p: Script) -> None:
    """With stock's behaviour, a wait would end the capture. The library omits the waits."""
    stream = lend(p)
    block = p.alloc(stream)
    capture(p, stream, 0)
    inner = p.stream()
    p.same(STREAM, inner, stream, "same")
    p.fill(block, 5, inner)
    p.sync(inner)
    event = p.recorded(inner)
    p.wait_event(event, inner)
    p.sync_event(event)
    p.unevent(event)
    p.fill(block, 6, inner)
    p.sync(inner)
    p.unstream(inner)
    graph = captured(p, stream)
    launch(p, graph, stream)
    p.read(block, stream, filled(6))
    p.lend(NULL)


@captures
def a_graph_is_no_part_of_a_capture(p: Script) -> None:
    first = p.stream()
    block = p.alloc(first)
    build(p)
    inner = p.stream()
    p.fill(block, 5, inner)
    p.unstream(inner)
    graph = built(p)
    p.unstream(first)
    stream = lend(p)
    capture(p, stream, RELAXED)
    p.failures.append("hipGraphLaunch(graph, stream)")
    replay(p, graph, stream, "-1")
    captured(p, stream)
    p.step("ungraph", graph)
    p.lend(NULL)


@capture_events
def a_capture_waits_for_an_earlier_event(p: Script) -> None:
    stream, host = lend(p), p.pinned()
    p.arrive(host, 7, stream)
    event = p.recorded(stream)
    capture(p, stream, RELAXED)
    p.sync_event(event)
    p.see(host, None)
    captured(p, stream)
    p.lend(NULL)
