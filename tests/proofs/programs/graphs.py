"""The library's graphs."""

from __future__ import annotations

from collections.abc import Callable

from tests.proofs.programs.script import (
    BUFFER,
    HEAP,
    HELD_MS,
    NULL,
    WORDS,
    Group,
    Script,
    content,
    filled,
    mixed,
    pattern,
)

#: With stock's behaviour, no graph is built.
graphs = Group("graphs", alone=True, known=True)
globals_at_once = Group("graphs-globals", ("library", "exclusive", "tight"), known=True)

LONG = 12  # launches that take a while
CHUNK = 256 << 10  # words whose copy takes a while


def build(p: Script) -> None:
    p.step("build", says="0")


def built(p: Script, says: str = "ok") -> int:
    graph = p.new("graph")
    p.step("built", graph, says=says)
    return graph


def replay(p: Script, graph: int, stream: int, says: str = "0") -> None:
    p.step("replay", graph, stream, says=says)


@graphs
def calls_become_nodes_and_are_replayed(p: Script) -> None:
    stream, host = p.stream(), p.new("buffer")
    p.step("malloc", HEAP, host, 4 * WORDS, NULL, 0, says="ok")
    p.step("hostset", host, WORDS, 1)
    build(p)
    inner = p.stream()
    module = p.load("plain0")
    block = p.alloc(inner)
    p.copy(block, host, inner)
    p.launch(p.function(module), inner, block, 2)
    p.sync(inner)
    p.copy(host, block, inner)
    p.free(block, inner)
    p.unstream(inner)
    p.unload(module)
    graph = built(p)
    p.step("empty")
    p.see(host, content(pattern(1)))
    for seed in (1, 2):
        p.step("hostset", host, WORDS, seed)
        replay(p, graph, stream)
        p.sync(stream)
        p.see(host, content(mixed(pattern(seed), "plain0", 2)))
    p.step("ungraph", graph)
    p.free(host, NULL, HEAP)


def two_streams(p: Script, join: Callable[[int, int, int], None]) -> None:
    """Runs long work on one stream and, on another stream, a copy that must come after that work.
    `join` orders the work and the copy."""
    stream = p.stream()
    block, out, host = p.alloc(stream, CHUNK), p.alloc(stream, CHUNK), p.new("buffer")
    p.step("malloc", HEAP, host, 4 * CHUNK, NULL, 0, says="ok")
    p.step("hostset", host, CHUNK, 1)
    build(p)
    first, second = p.streams(2)
    p.copy(block, host, first, CHUNK)
    for value in range(LONG):
        p.fill(block, value, first, CHUNK)
    join(first, second, out)
    p.copy(out, block, second, CHUNK)
    graph = built(p)
    for _ in range(2):
        replay(p, graph, stream)
        p.read(out, stream, filled(LONG - 1, CHUNK), CHUNK)
    p.step("ungraph", graph)
    p.free(host, NULL, HEAP)
    for buffer in (block, out):
        p.free(buffer, stream)


@graphs
def an_event_orders_two_streams(p: Script) -> None:
    def join(first: int, second: int, _out: int) -> None:
        event = p.event()
        p.wait_event(event, second)  # the event was not recorded yet
        p.record(event, first)
        p.wait_event(event, second)
        p.unevent(event)

    two_streams(p, join)


@graphs
def a_wait_of_the_host_orders_two_streams(p: Script) -> None:
    def join(first: int, _second: int, _out: int) -> None:
        p.sync(first)

    two_streams(p, join)


@graphs
def a_wait_of_the_host_for_an_event_orders_two_streams(p: Script) -> None:
    def join(first: int, _second: int, _out: int) -> None:
        event = p.recorded(first)
        p.sync_event(event)
        p.unevent(event)

    two_streams(p, join)


@graphs
def the_null_stream_orders_two_streams(p: Script) -> None:
    def join(_first: int, _second: int, out: int) -> None:
        p.fill(out, 1, NULL, 1)

    two_streams(p, join)


@graphs
def memory_that_serves_again_orders_two_streams(p: Script) -> None:
    def join(first: int, second: int, _out: int) -> None:
        freed = p.alloc(first)
        used = p.name(BUFFER, freed)
        p.fill(used, 7, first)
        p.free(freed, first)
        again = p.alloc(second)
        p.same(BUFFER, used, again, "same")
        p.free(again, second)

    two_streams(p, join)


@graphs
def memory_of_a_graph_is_nobody_elses(p: Script) -> None:
    stream = p.stream()
    p.free(p.alloc(stream), stream)
    p.sync(stream)
    build(p)
    inner = p.stream()
    freed = p.alloc(inner)
    block = p.name(BUFFER, freed)
    p.fill(block, 5, inner)
    p.free(freed, inner)
    left = p.alloc(inner)
    p.same(BUFFER, block, left, "same")
    other = p.alloc(inner, 2 * WORDS)
    p.fill(other, 4, inner)
    p.fill(left, 6, inner)
    p.unstream(inner)
    graph = built(p)
    for buffer in (left, other):
        p.free(buffer, stream)
    mine = [p.alloc(stream) for _ in range(3)] + [p.alloc(stream, 2 * WORDS)]
    for buffer in mine:
        p.same(BUFFER, block, buffer, "different")
        p.fill(buffer, 9, stream)
    for _ in range(2):
        replay(p, graph, stream)
        for buffer in mine:
            p.read(buffer, stream, filled(9))
        p.step("empty")
    p.step("ungraph", graph)
    for buffer in mine:
        p.free(buffer, stream)


@graphs
def memory_that_is_left_stays_the_programs(p: Script) -> None:
    stream = p.stream()
    build(p)
    block = p.alloc(stream)
    p.fill(block, 6, stream)
    graph = built(p)
    replay(p, graph, stream)
    p.step("ungraph", graph)
    p.step("empty")
    p.read(block, stream, filled(6))
    p.free(block, stream)


@graphs
def a_graph_that_runs_ends_after_its_work(p: Script) -> None:
    """When a program destroys a graph, other callers may get the graph's memory."""
    stream, second = p.streams(2)
    build(p)
    block = p.alloc(stream)
    p.fill(block, 6, stream)
    p.free(block, stream)
    graph = built(p)
    held = p.hold(stream, HELD_MS)
    replay(p, graph, stream)
    p.step("ungraph", graph)
    p.at_work(stream, "done")
    mine = p.alloc(second)
    p.fill(mine, 9, second)
    p.sync(second)
    p.let(held)
    p.sync(stream)
    p.read(mine, second, filled(9))
    p.free(mine, second)


@graphs
def a_module_of_a_graph_stays_loaded(p: Script) -> None:
    stream = p.stream()
    block = p.alloc(stream)
    build(p)
    module = p.load("plain1")
    p.launch(p.function(module), stream, block, 2)
    p.unload(module)
    graph = built(p)
    for image in ("plain2", "plain3", "plain4", "plain5"):  # more than a small limit holds
        other = p.load(image)
        p.launch(p.function(other), stream, block, 2)
        p.unload(other)
    p.step("empty")
    words = pattern(5)
    p.up(block, 5, stream)
    for _ in range(2):
        replay(p, graph, stream)
        words = mixed(words, "plain1", 2)
        p.read(block, stream, content(words))
    p.step("ungraph", graph)


@globals_at_once
def a_module_with_globals_of_a_graph_stays_loaded(p: Script) -> None:
    stream, module = p.stream(), p.load("cell0")
    bump = p.function(module, "bump")
    out = p.alloc(stream)
    build(p)
    p.launch(bump, stream, out, kernel="bump")
    graph = built(p)
    p.unload(module)
    p.step("empty")
    cell = 0
    for _ in range(2):
        replay(p, graph, stream)
        cell = 3 * cell + mixed([0], "cell0", 0)[0]
        p.read(out, stream, content([cell]), 1)
    p.step("ungraph", graph)
