"""The library's graphs, and functions that the library replays as graphs."""

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
functions = Group("functions", alone=True, host=True)
uncached = Group(
    "graphs-uncached", ("library",), {"MGPU_RT_CACHE": "modules,functions"}, known=True, host=True
)

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


# ---- graphs of the library's ---------------------------------------------------------------------


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


def refused(p: Script, call: Callable[[int], object], block: int) -> None:
    """The call cannot be part of a graph, so the library builds no graph. None of the graph's work
    runs. After the step `built`, calls run immediately."""
    stream = p.stream()
    p.fill(block, 1, stream)
    build(p)
    p.fill(block, 2, stream)
    call(stream)
    p.fill(block, 2, stream)
    built(p, "null")
    p.read(block, stream, filled(1))
    p.fill(block, 3, stream)
    p.read(block, stream, filled(3))
    p.unstream(stream)


@graphs
def what_cannot_be_in_a_graph_ends_the_building(p: Script) -> None:
    block, before, event = p.alloc(NULL), p.alloc(NULL), p.event()
    module = p.load("cell0")
    plain = p.function(p.load("plain0"))
    build(p)
    p.fill(block, 1, NULL)
    other = built(p)

    def twice(stream: int) -> None:
        inner = p.alloc(stream, 2 * WORDS)
        p.free(p.name(BUFFER, inner), stream)
        p.free(inner, stream)

    refused(p, lambda _: p.step("malloc", 4, p.new("buffer"), 4096, NULL, 0, says="ok"), block)
    refused(p, lambda _: p.alloc(NULL, shared=True), block)
    refused(p, lambda s: p.free(p.name(BUFFER, before), s), block)
    refused(p, twice, block)
    refused(p, lambda s: p.wait_event(event, s), block)
    refused(p, lambda _: p.unload(p.load("cell1")), block)
    refused(p, lambda s: p.step("bad", 6, 0), block)
    p.failures.append("hipGraphAddMemsetNode(&node, graph, dependencies, count, &params)")
    refused(p, lambda s: p.step("bad", 3, plain), block)
    refused(p, lambda s: p.step("bad", 8, 0), block)
    refused(p, lambda _: p.step("build", says="-1"), block)
    refused(p, lambda s: replay(p, other, s, "-1"), block)
    refused(p, lambda s: p.step("scratch", 2, s, says="ok"), block)
    p.step("ungraph", other)
    for buffer in (block, before):
        p.free(buffer, NULL)
    p.unload(module)


@uncached
def memory_that_hip_gets_back_is_in_no_graph(p: Script) -> None:
    stream = p.stream()
    build(p)
    p.step("malloc", 0, p.new("buffer"), 4096, stream, 0, says="null")
    built(p, "null")


# ---- functions of `mgpu-rt lower --graph` --------------------------------------------------------


def host_buffers(p: Script, count: int) -> list[int]:
    made = [p.new("buffer") for _ in range(count)]
    for buffer in made:
        p.step("malloc", HEAP, buffer, 4 * WORDS, NULL, 0, says="ok")
    return made


def call(p: Script, host: int, seed: int, k: int, image: int = 0, inner: int = 0) -> None:
    """Calls the function once on new words, and reads the result."""
    p.step("hostset", host, WORDS, seed)
    p.step("call", image, host, WORDS, k, inner)
    words = pattern(seed)
    for _ in range(max(1, inner)):
        words = mixed(words, f"plain{image}", k)
    p.see(host, content(words))


@functions
def a_function_is_right_at_each_call(p: Script) -> None:
    """The program calls the function with changing words and changing arguments."""
    first, second = host_buffers(p, 2)
    for number in range(5):
        call(p, first, number, 2)
    for arguments in ((second, 2, 0), (second, 3, 0), (second, 3, 1), (first, 2, 0)):
        host, k, image = arguments
        for number in range(4):
            call(p, host, number, k, image)
    for number in range(6):
        call(p, first, number, number % 2)
    p.step("empty")
    for number in range(3):
        call(p, first, number, 2)


@functions
def a_function_within_another_one_is_right(p: Script) -> None:
    (host,) = host_buffers(p, 1)
    for number in range(5):
        call(p, host, number, 2, inner=2)
    for number in range(3):
        call(p, host, number, 2)


@graphs
def a_function_within_a_graph_is_part_of_it(p: Script) -> None:
    stream, (host,) = p.stream(), host_buffers(p, 1)
    for number in range(4):
        call(p, host, number, 2)
    p.step("hostset", host, WORDS, 7)
    build(p)
    p.step("call", 0, host, WORDS, 2, 0)
    graph = built(p)
    p.see(host, content(pattern(7)))
    replay(p, graph, stream)
    p.sync(stream)
    p.see(host, content(mixed(pattern(7), "plain0", 2)))
    p.step("ungraph", graph)


@functions
def functions_of_several_threads_are_right(p: Script) -> None:
    p.threads = 3
    hosts = host_buffers(p, 3)
    p.step("post", 1)
    p.step("post", 2)
    for thread, host in enumerate(hosts):
        p.thread = thread
        if thread:
            p.step("await", thread)
        for number in range(6):
            call(p, host, number, 2 + thread)
