"""`mgpu-rt compare --exclusive`: four runs of a program, and what one word gains."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mgpu_rt._cli.stats.comparison import right_aligned
from mgpu_rt._cli.stats.kinds import REGISTRATIONS, WAITS, questions
from mgpu_rt._cli.stats.runs import Run
from mgpu_rt._cli.stats.statistics import Counter, total
from mgpu_rt._text import columns

SIDES = ("stock", "mgpu_rt", "--exclusive", "--exclusive --lazy")

LESS = 0.95  # of the time without the word: a twentieth is noise

_KINDS = {"registrations": REGISTRATIONS, "waits": WAITS}


def _parts(run: Run) -> dict[str, Counter]:
    """The calls of a run that a word may make faster."""
    program = run.statistics.program
    parts = {
        kind: total(program[name] for name in names if name in program)
        for kind, names in _KINDS.items()
    }
    return {**parts, "questions": total(questions(run.statistics.driver).values())}


def _same_output(runs: Sequence[Run]) -> list[bool]:
    """Whether each run printed what the first one did."""
    return [run.output == runs[0].output for run in runs]


def as_dict(runs: Sequence[Run]) -> dict[str, Any]:
    """For JSON, by side."""
    return {
        side: {
            "seconds": run.seconds,
            **{f"{kind}_ns": part.ns for kind, part in _parts(run).items()},
            "same_output": same,
        }
        for side, run, same in zip(SIDES, runs, _same_output(runs), strict=True)
    }


def lines(runs: Sequence[Run]) -> Iterator[str]:
    """For people: a column a run, and what they say."""
    parts = [_parts(run) for run in runs]
    rows = [("since the first call", *(f"{1e3 * run.seconds:.3f}" for run in runs))]
    rows += [(kind, *(f"{part[kind].ns / 1e6:.3f}" for part in parts)) for kind in parts[0]]
    rows.append(("output", *("same" if same else "DIFFERS" for same in _same_output(runs))))
    for side, run in zip(SIDES[2:], runs[2:], strict=True):
        yield from (f"{side}: {failure}" for failure in run.statistics.failures)
    yield ""
    yield from right_aligned(("with one word, ms", *SIDES), rows)
    yield ""
    yield from columns([("note", _advice(runs))])


def _advice(runs: Sequence[Run]) -> str:
    same = _same_output(runs)
    if not same[1]:
        return (
            "Two runs without a word print different output, so nothing shows whether the word "
            "holds. Let the program print no times or addresses."
        )
    told = []
    best = 1
    for number in (2, 3):
        if runs[number].statistics.failed:
            told.append(f"Calls failed with {SIDES[number]}: run the program without it.")
        elif not same[number]:
            told.append(f"The output differs with {SIDES[number]}: run the program without it.")
        elif runs[number].seconds < LESS * runs[best].seconds:
            best = number
    if best == 1:
        return " ".join([*told, "No word made this program faster by a twentieth."])
    saved = runs[1].seconds - runs[best].seconds
    told.append(
        f"If nothing else in the process calls HIP, `mgpu-rt run {SIDES[best]}` takes "
        f"{100 * saved / runs[1].seconds:.0f} % less time{_where(runs[1], runs[best], saved)}."
    )
    return " ".join(told)


def _where(before: Run, after: Run, saved: float) -> str:
    """The calls that most of the seconds were saved in; empty if none of them."""
    parts = _parts(before), _parts(after)
    less = {kind: parts[0][kind].ns - parts[1][kind].ns for kind in parts[0]}
    kind = max(less, key=lambda name: less[name])
    return f", mostly in {kind}" if less[kind] > saved * 1e9 / 2 else ""
