"""Overrides of functions. An override gets no calls about graphs or external streams."""

from __future__ import annotations

from tests.proofs.programs.captures import RELAXED, capture, captured, lend
from tests.proofs.programs.graphs import build, built, call, host_buffers
from tests.proofs.programs.script import NULL, STREAM, Group, Script, filled

overrides = Group("overrides", alone=True, known=True, host=True)

CREATE_STREAM, DESTROY_STREAM, CREATE_EVENT, NO_NAME = range(4)


def override(p: Script, function: int, on: bool = True) -> None:
    p.step("override", function, int(on), says="0")


def overridden(p: Script, calls: int) -> None:
    p.step("overridden", says=f"{calls} calls")


@overrides
def no_graph_is_begun_beside_an_override(p: Script) -> None:
    override(p, CREATE_STREAM)
    p.step("build", says="-1")
    override(p, CREATE_STREAM, False)
    build(p)
    override(p, CREATE_STREAM)
    p.stream()
    overridden(p, 0)
    override(p, CREATE_STREAM, False)
    built(p, "null")


@overrides
def a_function_without_a_name_is_refused(p: Script) -> None:
    p.step("override", NO_NAME, 0, says="-1")


@overrides
def a_lent_stream_comes_before_an_override(p: Script) -> None:
    override(p, CREATE_STREAM)
    stream = lend(p)
    overridden(p, 0)
    override(p, CREATE_STREAM, False)
    override(p, DESTROY_STREAM)
    p.unstream(p.name(STREAM, stream))
    overridden(p, 0)
    p.lend(NULL)
    p.unstream(p.stream())
    overridden(p, 1)
    override(p, DESTROY_STREAM, False)
    block = p.alloc(stream)
    p.fill(block, 7, stream)
    p.read(block, stream, filled(7))


@overrides
def no_override_is_asked_in_a_capture(p: Script) -> None:
    stream = lend(p)
    block = p.alloc(stream)
    override(p, CREATE_EVENT)
    capture(p, stream, RELAXED)
    event = p.event()
    p.fill(block, 1, stream)
    overridden(p, 0)
    captured(p, stream)
    again = p.event()
    overridden(p, 1)
    override(p, CREATE_EVENT, False)
    for one in (event, again):
        p.unevent(one)
    p.lend(NULL)


@overrides
def a_function_under_an_override_runs_plainly(p: Script) -> None:
    (host,) = host_buffers(p, 1)
    for calls, on in ((3, False), (2, True), (3, False)):
        if on:
            override(p, CREATE_STREAM)
        for number in range(calls):
            call(p, host, number, 2)
        if on:
            overridden(p, calls)
            override(p, CREATE_STREAM, False)
