"""Two runs side by side: each function's calls and time, before and after, with the ratio."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from mgpu_rt._cli.stats.kinds import PURPOSE, questions, work
from mgpu_rt._cli.stats.listing import NONE, cells
from mgpu_rt._cli.stats.reasons import reasons
from mgpu_rt._cli.stats.statistics import Counter, Statistics, devices, total
from mgpu_rt._text import columns, printable, shown

Pair = tuple[Counter | None, Counter | None]


def ratio(before: Counter | None, after: Counter | None) -> float | None:
    """How many times as long it took before; None where one of them was not counted."""
    return before.ns / after.ns if before and after and before.ns and after.ns else None


def pairs(before: Mapping[str, Counter], after: Mapping[str, Counter]) -> dict[str, Pair]:
    """By function, the longest before first."""
    names = sorted({**before, **after}, key=lambda name: -(before.get(name) or after[name]).ns)
    return {name: (before.get(name), after.get(name)) for name in names}


def summed(counters: Mapping[str, Counter]) -> Counter | None:
    """None if nothing was counted."""
    return total(counters.values()) if counters else None


def as_dict(before: Statistics, after: Statistics) -> dict[str, Any]:
    """For JSON; null stands for a value that was not counted."""

    def layer(
        left: Mapping[str, Counter], right: Mapping[str, Counter], what: str = "functions"
    ) -> dict[str, Any]:
        counted = {name: _values(pair) for name, pair in pairs(left, right).items()}
        return {what: counted, "total": _values((summed(left), summed(right)))}

    return {
        "failed": {"before": _failed(before), "after": _failed(after)},
        "overridden": {"before": before.overridden, "after": after.overridden},
        "program": layer(before.program, after.program),
        "driver": layer(work(before.driver), work(after.driver)),
        "questions": layer(questions(before.driver), questions(after.driver)),
        "launches": layer(before.kernels, after.kernels, "kernels"),
        "start": {"before": before.start, "after": after.start},
        "device": {
            name: asdict(run.device) if run.device else None
            for name, run in (("before", before), ("after", after))
        },
        "reasons": reasons(before, after),
        "cache": {
            name: {
                "before": asdict(before.caches[name]) if name in before.caches else None,
                "after": asdict(after.caches[name]) if name in after.caches else None,
            }
            for name in {**before.caches, **after.caches}
        },
    }


def _failed(run: Statistics) -> list[dict[str, Any]]:
    return [{**asdict(failure), "calls": calls} for failure, calls in run.failed.items()]


def _values(pair: Pair) -> dict[str, Any]:
    before, after = (asdict(counter) if counter else None for counter in pair)
    return {"before": before, "after": after, "ratio": ratio(*pair)}


def lines(names: tuple[str, str], before: Statistics, after: Statistics) -> Iterator[str]:
    """For people. `names` are those of the two runs."""
    runs = (before, after)
    for name, run in zip(("before", "after"), runs, strict=True):
        yield from (f"{name}: {failure}" for failure in run.failures)
    yield f"before: {printable(names[0])}"
    yield f"after:  {printable(names[1])}"
    yield from _devices(before, after)
    if before.start is not None or after.start is not None:
        starts = (f"{run.start / 1e6:.3f}" if run.start is not None else NONE for run in runs)
        head = ("paid once, and in no time below", "ms before", "after")
        yield ""
        yield from right_aligned(head, [("HIP's start", *starts)])
    for title, left, right in (
        ("calls of the program", before.program, after.program),
        ("calls of the driver", work(before.driver), work(after.driver)),
        ("questions to the driver", questions(before.driver), questions(after.driver)),
        ("launches of kernels", before.kernels, after.kernels),
    ):
        if not left and not right:
            continue
        yield ""
        rows = [_row(name, pair) for name, pair in pairs(left, right).items()]
        rows.append(_row("total", (summed(left), summed(right))))
        yield from right_aligned(
            (title, "calls before", "after", "ms before", "after", "ratio"), rows
        )
    yield ""
    cache_head = ("cache", "hits before", "misses", "rate", "hits after", "misses", "rate")
    caches = {**before.caches, **after.caches}
    rows = [
        (shown(name), *cells(before.caches.get(name)), *cells(after.caches.get(name)))
        for name in caches
    ]
    yield from right_aligned(cache_head, rows)
    if notes := _notes(before, after):
        yield ""
        yield from columns(notes)


def _devices(before: Statistics, after: Statistics) -> Iterator[str]:
    """The devices of both runs, in one line if they are the same."""
    found = devices((before, after))
    for device in found:
        yield f"on:     {shown(device.description)}"
    for warning in dict.fromkeys(device.warning for device in found if device.warning):
        yield f"        {warning}"


def _notes(before: Statistics, after: Statistics) -> list[tuple[str, str]]:
    """Notes on figures that may surprise a newcomer."""
    told = [("note", f"{name}: {why}") for name, why in reasons(before, after).items()]
    for name, run in (("before", before), ("after", after)):
        if run.uncounted:
            told.append(("note", f"{name}: {run.uncounted}"))
    return [*told, ("note", PURPOSE)] if questions(after.driver) else told


def _row(name: str, pair: Pair) -> tuple[str, ...]:
    calls = [str(counter.calls) if counter else NONE for counter in pair]
    times = [f"{counter.ns / 1e6:.3f}" if counter else NONE for counter in pair]
    return (shown(name), *calls, *times, factor(ratio(*pair)))


def factor(value: float | None) -> str:
    """Three digits that matter."""
    if value is None:
        return NONE
    return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f}"


def right_aligned(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> Iterator[str]:
    """Columns of numbers, which end where their heads do."""
    table = [head, *rows]
    widths = [max(map(len, cells)) for cells in zip(*table, strict=True)]
    for first, *others in table:
        numbers = (cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))
        yield f"{first:{widths[0]}}  {'  '.join(numbers)}".rstrip()
