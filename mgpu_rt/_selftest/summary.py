"""Prints a selftest's findings in ten lines."""

from __future__ import annotations

from mgpu_rt._selftest.fast import by_side
from mgpu_rt._selftest.machine import EMULATED
from mgpu_rt._selftest.result import NO, STOCK, YES, Result
from mgpu_rt._text import duration

#: For each loop: the work in one iteration.
ITERATION = {
    "forum": "one launch",
    "churn": "allocate, copy, launch, copy, free",
    "layers": "three launches in a chain",
}


def verdict(result: Result) -> str:
    """Returns the verdict as a sentence that says what was compared."""
    compared, total = (sum(getattr(p, n) for p in result.right) for n in ("compared", "total"))
    done = ", ".join(f"{part.name} {part.compared} of {part.total}" for part in result.right)
    verdict = result.verdict
    if verdict == NO:
        differ = sum(wrong.side != STOCK for wrong in result.wrong)
        return f"NO: {differ} differ from stock's behaviour (compared: {done})"
    if verdict == YES:
        return f"yes, all are as with stock's behaviour ({done})"
    if any(wrong.side == STOCK for wrong in result.wrong):
        return f"NOT KNOWN: stock's behaviour itself is wrong on this device ({done})"
    if compared == 0:
        return "NOT KNOWN: nothing was compared"
    return f"NOT KNOWN: only {compared} of {total} could be compared ({done})"


def lines(result: Result, file: str = "") -> list[str]:
    """Returns ten lines for a terminal, and more for each fault."""
    device = result.device
    times = ": no GPU was timed" if device["driver"] == EMULATED else ""
    reports = "reports calls" if device["reports"] else "reports no calls"
    said = [
        f"device:   {device['name']} ({device['target']}), one of {device['devices']}",
        f"HIP:      {device['hip']}, {reports}, driver {device['driver']}{times}",
        f"library:  mgpu_rt {result.mgpu_rt}; {result.seconds:.0f} s{_ended(result)}",
        f"right:    {verdict(result)}",
        *(_loop(*loop, sides, bool(times)) for loop, sides in by_side(result.fast).items()),
        *(f"untimed:  {why}" for why in result.untimed),
        f"file:     {file or 'none; --json FILE keeps this, to be sent'}",
    ]
    for wrong in result.wrong:
        said += ["", f"{wrong.name}, {wrong.side}; again: {wrong.repeat}"]
        said += [f"    {line}" for line in wrong.says]
    return said


def _ended(result: Result) -> str:
    return f"; ended early: {result.ended}" if result.ended else ""


def _loop(program: str, llvm: int, sides: dict, is_emulated: bool) -> str:
    stock, library = sides[STOCK], sides["library"]
    gain = "" if is_emulated else f", {stock.us / library.us:.1f} times as fast"
    return (
        f"time:     {ITERATION[program]} ({program}, LLVM {llvm}): {duration(1000 * stock.us)} "
        f"with stock's behaviour, {duration(1000 * library.us)} with the library{gain}"
    )
