"""Host memory that is registered, unregistered and registered again.

Only a device that pins pages can still read the old pages after the program has replaced the pages.
NVIDIA's devices pin pages, and so does the stub of HIP with HIPSTUB_PINS=1. AMD's kernel driver
tracks changes of a process's pages.
"""

from __future__ import annotations

from tests.proofs.programs.graphs import build, built, replay
from tests.proofs.programs.script import (
    BUFFER,
    NULL,
    WORDS,
    Group,
    Script,
    content,
    filled,
    pattern,
)

#: Registrations stay cached if no other code calls HIP.
SIDES = ("exclusive", "lazy and exclusive")
pages = Group("registered-pages", SIDES, pins=True)
registered = Group("registered", SIDES)
of_two = Group("devices-registered", ("exclusive",), devices=2)

UNMAPPED, MOVED, DROPPED, TRUNCATED, FORKED = range(5)


def mapped(p: Script, count: int = 2, file: bool = False) -> int:
    made = p.new("buffer")
    p.step("pages", made, count, int(file))
    return made


def register(p: Script, buffer: int, count: int = WORDS) -> None:
    p.step("register", buffer, 4 * count)


def passed(p: Script, host: int, seed: int, count: int = WORDS) -> None:
    """Registers and writes host memory, copies it to the device, and unregisters it."""
    stream = p.stream()
    block = p.alloc(stream, count)
    register(p, host, count)
    p.step("hostset", host, count, seed)
    p.copy(block, host, stream, count)
    p.read(block, stream, content(pattern(seed, count)), count)
    p.step("unregister", host)
    p.free(block, stream)
    p.unstream(stream)


def read_late(p: Script, host: int, count: int = WORDS) -> None:
    """A copy from memory that is not registered has read the memory when the copy returns. Only a
    copy to other host memory is HIP's own."""
    stream, there = p.stream(), mapped(p, 3)
    block = p.alloc(stream, count)
    for to in (block, there):
        p.step("hostset", host, count, 1)
        held = p.hold(stream)
        p.copy(to, host, stream, count)
        p.step("hostset", host, count, 2)
        p.let(held)
        p.sync(stream)
    p.read(block, stream, content(pattern(1, count)), count)
    p.see(there, content(pattern(1, count)), count)
    p.free(block, stream)
    p.unstream(stream)


@pages
def pages_of_a_file_are_replaced(p: Script) -> None:
    """The program truncates the file. The kernel reports a truncation to no process. This
    program is the group's first, because the library does not watch an address again at which
    pages were dropped."""
    host = mapped(p, file=True)
    passed(p, host, 1, 2 * WORDS)
    p.step("replace", host, 2, TRUNCATED)
    passed(p, host, 2, 2 * WORDS)


@pages
def pages_are_replaced(p: Script) -> None:
    """The program replaces the pages by mmap at the same address, by mremap, by madvise, or by a
    write after a fork."""
    for how in (UNMAPPED, MOVED, DROPPED, FORKED):
        host = mapped(p)
        passed(p, host, 1, 2 * WORDS)
        p.step("replace", host, 2, how)
        passed(p, host, 2, 2 * WORDS)


@pages
def two_ranges_share_a_page(p: Script) -> None:
    """The library has ended the first registration before the program replaces the page."""
    for goes_at, goes, stays_at, stays in ((1024, 2 * WORDS, 0, 128), (0, 1280, 6144, 128)):
        page = mapped(p, 3)
        first = p.name(BUFFER, page, offset=goes_at)
        second = p.name(BUFFER, page, offset=stays_at)
        passed(p, first, 1, goes)
        passed(p, second, 2, stays)
        read_late(p, first, goes)
        p.step("replace", page, 3, UNMAPPED)
        passed(p, second, 3, stays)


@registered
def an_unregister_waits_for_work(p: Script) -> None:
    stream, host = p.stream(), mapped(p)
    p.step("hostset", host, WORDS, 5)
    register(p, host)
    p.arrive(host, 7, stream)
    p.step("unregister", host)
    p.see(host, filled(7))
    p.unstream(stream)


@registered
def unregistered_memory_is_pageable(p: Script) -> None:
    host = mapped(p)
    passed(p, host, 1)
    read_late(p, host)


@registered
def other_bytes_are_another_registration(p: Script) -> None:
    host = mapped(p)
    behind = p.name(BUFFER, host, offset=4 * WORDS)
    passed(p, host, 1)
    register(p, host, 2 * WORDS)
    p.step("ondevice", behind, says="on device 0")
    p.step("unregister", host)


@of_two
def each_device_registers_for_itself(p: Script) -> None:
    host = mapped(p)
    for device in (0, 1, 0):
        p.step("device", 0, device)
        register(p, host)
        p.step("ondevice", host)
        p.step("unregister", host)


graphs = Group("registered-graphs", ("exclusive",), known=True)


@graphs
def a_graph_whose_memory_was_registered_since_is_refused(p: Script) -> None:
    host, stream = mapped(p), p.stream()
    block = p.alloc(stream)
    build(p)
    p.copy(block, host, stream)
    graph = built(p)
    register(p, host)
    replay(p, graph, stream, "-1")
    p.failures.append("hipGraphLaunch(graph, stream)")
    p.step("unregister", host)
    p.step("ungraph", graph)


@graphs
def a_graph_copies_what_lies_there_now(p: Script) -> None:
    """Cached registrations exist only when the graph is built, or only when the graph is
    replayed."""
    for registers_first in (True, False):
        host, back, stream = mapped(p), mapped(p), p.stream()
        block = p.alloc(stream)
        if registers_first:
            passed(p, host, 1)
            passed(p, back, 1)
        build(p)
        inner = p.stream()
        p.copy(block, host, inner)
        p.copy(back, block, inner)
        p.unstream(inner)
        graph = built(p)
        if registers_first:
            p.step("empty")
        else:
            passed(p, host, 2)
            passed(p, back, 2)
        for seed in (3, 4):
            p.step("hostset", host, WORDS, seed)
            replay(p, graph, stream)
            p.sync(stream)
            p.see(back, content(pattern(seed)))
        p.step("ungraph", graph)
        p.free(block, NULL)
        p.unstream(stream)
