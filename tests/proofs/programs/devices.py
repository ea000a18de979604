"""Programs on several devices, and programs that reset a device."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tests.proofs.programs.copies import run
from tests.proofs.programs.graphs import build, built, replay
from tests.proofs.programs.memory import taken_early
from tests.proofs.programs.script import (
    EVENT,
    HIP,
    NULL,
    STREAM,
    WORDS,
    Group,
    Script,
    content,
    filled,
    mixed,
    pattern,
)

#: The programs run on two devices; device 0 is the first.
devices = Group("devices", devices=2)
graphs = Group("devices-graphs", known=True, devices=2)
#: A reset ends the caching for its device, so a group's first reset of each device is what counts.
of_modules = Group("of-modules", harsh=True)
of_streams = Group("of-streams", harsh=True)
of_events = Group("of-events", harsh=True)
of_memory = Group("of-memory", harsh=True)
of_shared_memory = Group("of-shared-memory", harsh=True)
of_handles = Group("of-handles", harsh=True)
of_two = Group("of-two", harsh=True, devices=2)
of_two_again = Group("of-two-again", harsh=True, devices=2)


def on(p: Script, device: int, who: int = 0) -> None:
    p.step("device", who, device)


def job(p: Script, seed: int, image: str = "plain0") -> None:
    """Uses objects of each kind, and reads their results. A wrong result shows that the library has
    reused an object of another device or of an earlier owner."""
    stream = p.stream()
    module, event = p.load(image), p.event()
    run(p, p.function(module), image)
    block, shared = p.alloc(stream), p.alloc(NULL, shared=True)
    p.up(block, seed, stream)
    p.fill(shared, seed, stream)
    p.record(event, stream)
    p.wait_event(event, stream)
    p.sync_event(event)
    p.read(block, stream, content(pattern(seed)))
    p.read(shared, stream, filled(seed))
    for buffer in (block, shared):
        p.free(buffer, stream)
    p.unevent(event)
    p.sync(stream)
    p.unload(module)
    p.unstream(stream)


@devices
def each_device_has_its_own(p: Script) -> None:
    """Either the library or HIP chooses the device."""
    for number in range(8):
        on(p, number % 2, who=number // 4)
        job(p, number)
    on(p, 0)


@devices
def memory_goes_back_to_its_device(p: Script) -> None:
    """The program also frees memory on a stream of another device."""
    first = p.stream()
    block = p.alloc(first)
    p.free(block, first)
    p.sync(first)
    on(p, 1)
    second = p.stream()
    for _ in range(2):
        there = p.alloc(second)
        p.fill(there, 7, second)
        p.read(there, second, filled(7))
        p.step("ondevice", there, says="on device 1")
        p.free(there, first)
    on(p, 0)
    for _ in range(2):
        here = p.alloc(first)
        p.step("ondevice", here, says="on device 0")
        p.free(here, first)
    on(p, 0)


@devices
def a_freed_block_waits_for_work_of_before(p: Script) -> None:
    """The block lies on device 0. Device 1 is current when the program submits the work, or when
    the program frees the block."""
    stream, own = p.stream(), p.stream(2)
    for other, submits_on, frees_on in ((NULL, 0, 1), (own, 1, 0)):
        block = p.alloc(stream)
        held = p.hold(other)
        on(p, submits_on)
        p.fill(block, 7, other)
        on(p, frees_on)
        p.free(block, stream)
        on(p, 0)
        taken_early(p, stream, stream if other else own, held)


@devices
def handles_that_come_back_elsewhere_are_others(p: Script) -> None:
    stream = p.stream()
    gone = p.name(STREAM, stream)
    here = p.alloc(stream)
    p.free(here, stream)
    p.unstream(stream, HIP)
    on(p, 1, HIP)
    foreign = p.again(STREAM, gone)
    there = p.alloc(foreign)
    p.step("ondevice", there, says="on device 1")
    p.fill(there, 7, foreign)
    p.read(there, foreign, filled(7))
    p.free(there, foreign)
    p.sync(foreign)
    p.unstream(foreign, HIP)
    on(p, 0, HIP)
    job(p, 3)


@graphs
def a_graph_is_of_one_device(p: Script) -> None:
    for switches in (((1, 0), (0, 0)), ((1, HIP),)):
        build(p)
        for device, who in switches:
            on(p, device, who)
        built(p, "null")
        on(p, 0)
        job(p, 1)


@graphs
def a_graph_runs_on_its_device_alone(p: Script) -> None:
    """A replay on the graph's device works even if a different device is current."""
    own, module = p.stream(), p.load("plain0")
    block = p.alloc(own)
    build(p)
    inner = p.stream()
    p.fill(block, 5, inner)
    p.launch(p.function(module), inner, block, 2)
    p.unstream(inner)
    graph = built(p)
    p.fill(block, 1, own)
    p.sync(own)
    on(p, 1, HIP)
    elsewhere = p.stream()
    p.failures.append("hipGraphLaunch(graph, stream)")
    replay(p, graph, elsewhere, "-1")
    p.unstream(elsewhere)
    replay(p, graph, own)
    p.sync(own)
    on(p, 0, HIP)
    p.read(block, own, content(mixed([5] * WORDS, "plain0", 2)))
    p.step("ungraph", graph)
    p.free(block, own)
    p.unload(module)
    p.unstream(own)


# ---- resets --------------------------------------------------------------------------------------


def first_module(p: Script) -> None:
    made = p.load("plain0")
    run(p, p.function(made), "plain0")
    p.unload(made)


def first_stream(p: Script) -> None:
    made, block = p.stream(), p.alloc(NULL)
    p.fill(block, 3, made)
    p.read(block, made, filled(3))
    p.free(block, NULL)
    p.unstream(made)


def first_event(p: Script) -> None:
    made = p.event()
    p.record(made, NULL)
    p.sync_event(made)
    p.unevent(made)


def first_memory(p: Script, *, shared: bool = False) -> None:
    made = p.alloc(NULL, shared=shared)
    p.fill(made, 3, NULL)
    p.read(made, NULL, filled(3))
    p.free(made, NULL)


def nothing_of_before_serves_again(p: Script, first: Callable[[Script], None]) -> None:
    """After the reset, the program first creates and uses an object of one kind."""
    job(p, 1)
    first(p)
    first(p)
    p.step("reset")
    taken = []
    for _ in range(8):  # perhaps with the handles and addresses of before
        taken.append((p.stream(HIP), p.event(HIP), p.alloc(NULL, who=HIP)))
        p.fill(taken[-1][2], 5, NULL, who=HIP)
    p.sync(NULL, 3)
    first(p)
    job(p, 2)
    for stream, event, block in taken:
        p.read(block, stream, filled(5), who=HIP)
        p.step("unevent", HIP, event)
        p.unstream(stream, HIP)
        p.free(block, NULL, HIP)


for group, first in (
    (of_modules, first_module),
    (of_streams, first_stream),
    (of_events, first_event),
    (of_memory, first_memory),
    (of_shared_memory, partial(first_memory, shared=True)),
):
    group(partial(nothing_of_before_serves_again, first=first))


@of_handles
def nothing_is_handed_out_that_hip_has_given_to_others(p: Script) -> None:
    """After a reset, the library must not return a handle from before the reset."""
    mine = p.stream()
    gone = p.name(STREAM, mine)
    p.unstream(mine)
    p.step("reset")
    foreign = p.again(STREAM, gone)
    mine = p.stream()
    p.same(STREAM, mine, foreign, "different")
    p.unstream(mine)


@of_handles
def events_of_before_a_reset_are_hips(p: Script) -> None:
    stream, event = p.stream(), p.event()
    old = p.name(EVENT, event), p.name(STREAM, stream)
    p.unstream(stream)
    p.step("reset")
    foreign, own = p.again(EVENT, old[0]), p.again(STREAM, old[1])
    p.record(foreign, own)
    p.sync_event(foreign)
    mine = p.event()
    p.same(EVENT, mine, foreign, "different")
    p.step("unevent", HIP, foreign)
    p.unstream(own, HIP)
    p.unevent(mine)


@of_memory
def jobs_that_each_reset(p: Script) -> None:
    for number in range(4):
        job(p, number)
        p.step("reset")
    job(p, 9)
    p.step("empty")


@of_two
def a_reset_of_one_device_leaves_the_others(p: Script) -> None:
    for number in range(6):
        for device in (0, 1):
            on(p, device, HIP)
            job(p, 2 * number + device)
        on(p, number % 2, HIP)
        p.step("reset")
        own = p.alloc(NULL, who=HIP)
        p.fill(own, 5, NULL, who=HIP)
        job(p, 100 + number)
        p.read(own, NULL, filled(5), who=HIP)
        p.free(own, NULL, HIP)
    on(p, 0, HIP)


@of_two_again
def streams_that_come_back_elsewhere_are_others(p: Script) -> None:
    for device in (0, -1, 1, 0, 1):
        if device < 0:
            p.step("reset")
            continue
        on(p, device, HIP)
        made = p.streams(4)
        for stream in made:
            event = p.recorded(stream)
            p.sync(stream)
            p.unevent(event)
        for stream in made:
            p.unstream(stream)
    on(p, 0, HIP)
