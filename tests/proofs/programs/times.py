"""Times between events: which processes ask for times, and which events have timing."""

from __future__ import annotations

from tests.proofs.programs.script import NULL, Group, Script

#: Each group has its own process, because a process cannot stop asking for times.
SIDES = ("exclusive",)
found = Group("times", SIDES, known=True, host=True)
imported = Group("times-imported", SIDES, host=True)
own = Group("times-own", SIDES, host=True)
wrapped = Group(
    "times-wrapped", SIDES, options={"LD_PRELOAD": "{images}/timer.so"}, known=True, host=True
)

FOUND, IMPORTED, OWN, WRAPPED = range(4)


def elapsed(p: Script, how: int, clock: int, says: str = "a time") -> None:
    """Asks for the time between two events, through one of the function's two signatures."""
    p.step("elapsed", how, NULL, clock, says=says)


@found
def an_event_of_before_has_no_time(p: Script) -> None:
    before = p.event()
    elapsed(p, 0, FOUND)
    p.unevent(before)
    for how in (0, 1):
        elapsed(p, how, FOUND)


@found
def what_is_no_event_has_no_time(p: Script) -> None:
    for how in (2, 3):
        elapsed(p, how, FOUND, "no time")
        p.failures.append("hipEventElapsedTime(&milliseconds, start, stop)")


@imported
def a_library_that_imports_the_function_has_times(p: Script) -> None:
    """The program uses an event, then opens the library that asks for times, and then loads a
    module."""
    p.unevent(p.event())
    p.step("open")
    p.load("plain0")
    elapsed(p, 0, IMPORTED)


@own
def a_library_with_such_a_function_has_times(p: Script) -> None:
    elapsed(p, 1, OWN)


@wrapped
def a_function_around_the_librarys_has_times(p: Script) -> None:
    for how in (0, 1):
        elapsed(p, how, WRAPPED)
