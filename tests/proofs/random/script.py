"""Turns a list of random actions into the calls of a program.

An action is seven bytes. Every list of actions is a valid program, because the bytes select among
the objects that exist when the action begins. An action without a suitable object does nothing. A
failing program therefore stays valid when hypothesis removes actions to shrink it. The model
(model.py) keeps the program valid.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.proofs.random import actions, edges, graphs, runner
from tests.proofs.random.model import MAIN, Program, Script

ACTION = 7  # bytes
EVERY = (*actions.ACTIONS, *edges.ACTIONS, *graphs.ACTIONS)
TABLE = [function for weight, function in EVERY for _ in range(weight)]


def write(
    head: bytes,
    drawn: Sequence[bytes],
    *,
    exits: bool = False,
    null_order: bool = False,
    memory: int = 0,
    devices: int = 1,
    starts: bool = False,
    without: Sequence[str] = (),
    alone_for: int = 0,
) -> Script:
    """Returns the program of these actions; `without` lists the actions and the kinds of failures
    that the program must not contain. Other code calls HIP only after `alone_for` actions."""
    program = Program(
        head,
        exits=exits,
        null_order=null_order,
        memory=memory,
        devices=devices,
        without=without,
    )
    may_meet = not program.is_alone
    program.is_alone |= alone_for > 0
    if starts:
        for number in reversed(range(devices)):
            program.enter(MAIN, number)
            program.say(MAIN, "sync", 3, program.null)
    program.enter(MAIN)
    if exits:  # no program makes its first call of HIP at exit
        actions.stream(program, MAIN, bytes(ACTION))
    table = [actions.nothing if f.__name__ in without else f for f in TABLE]
    for i, action in enumerate(drawn):
        if may_meet and i == alone_for:
            program.meet_foreign()
        action = bytes(action).ljust(ACTION, b"\0")
        program.ended = program.head[1] % 4 == 1 and 4 * i > 3 * len(drawn)
        thread = program.thread(action[1], i / max(len(drawn), 1))
        program.enter(thread)
        function = table[action[0] % len(table)]
        if not (program.is_alone and function.__name__ in runner.FOREIGN):
            function(program, thread, action[2:])
    if may_meet and alone_for == len(drawn):
        program.meet_foreign()
    program.finish(program.thread(0, 1))
    return program.script()
