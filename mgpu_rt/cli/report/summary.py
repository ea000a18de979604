"""The top of the page: what came out, in a sentence, five figures and one picture."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from mgpu_rt.cli.report import charts, words
from mgpu_rt.cli.report.markup import Element, element
from mgpu_rt.cli.report.runs import Run, names
from mgpu_rt.cli.stats.comparison import summed
from mgpu_rt.cli.stats.driver_calls import questions, work
from mgpu_rt.cli.stats.statistics import Cache, Counter, devices, total
from mgpu_rt.text import shortened

#: What the program's calls are about, by the beginnings of their names; the first that fits.
GROUPS = {
    "modules": ("mgpuModule",),
    "launches": ("mgpuLaunch",),
    "waiting": ("mgpuStreamSynchronize", "mgpuEventSynchronize"),
    "streams": ("mgpuStream",),
    "events": ("mgpuEvent",),
    "copies": ("mgpuMemcpy", "mgpuMemset"),
    "memory": ("mgpuMem",),
    "other": ("",),
}

START = "HIP's start"  # a group of its own, in no call's time


def head(runs: Sequence[Run]) -> Iterator[Element]:
    """The program's name, the outcome, the figures."""
    yield element("p", "mgpu_rt report", class_="kicker")
    yield element("h1", shortened(runs[-1].program))
    yield element("p", _outcome(runs), class_="lead")
    yield from _devices(runs)
    yield element("dl", *_tiles(runs), class_="tiles")


def _outcome(runs: Sequence[Run]) -> str:
    sums = [total(run.statistics.program.values()) for run in runs]
    times = [counter.ns for counter in sums]
    if len(runs) == 1:
        calls = words.plural(sums[0].calls, "call")
        return f"The program's {calls} to MLIR's GPU runtime took {words.time(times[0])}."
    told = f"The program's calls took {_compared(*times)}."
    starts = [words.time(run.start) for run in runs]
    if set(starts) == {words.NONE}:
        return told
    return (
        f"{told} HIP's start is in neither: each run pays it once, {starts[0]} before and "
        f"{starts[1]} after."
    )


def _devices(runs: Sequence[Run]) -> Iterator[Element]:
    for device in devices(run.statistics for run in runs):
        warning = element("strong", f" {device.warning}.") if device.warning else None
        yield element("p", f"On {device.words}.", warning, class_="quiet")


def _compared(before: int, after: int) -> str:
    told = f"{words.time(before)} before and {words.time(after)} after"
    if not before or not after:
        return told
    if before >= after:
        return f"{told}, {words.factor(before / after)} times as fast"
    return f"{told}, {words.factor(after / before)} times as long"


# ---- figures ----


def _tiles(runs: Sequence[Run]) -> Iterator[Element]:
    def tile(name: str, values: Iterable[str]) -> Element:
        *earlier, last = values
        known = (value for value in earlier if {value, last} != {words.NONE})
        old = [element("dd", f"{value} before", class_="old") for value in known]
        return element("div", element("dt", name), element("dd", last), *old)

    programs = [summed(run.statistics.program) for run in runs]
    drivers = [summed(work(run.statistics.driver)) for run in runs]
    asked = [summed(questions(run.statistics.driver)) for run in runs]
    yield tile("time in calls", (words.time(c.ns if c else None) for c in programs))
    yield tile("launches", (words.count(_launches(run)) for run in runs))
    yield tile("calls of the driver", (words.count(c.calls if c else None) for c in drivers))
    if any(asked):
        yield tile("questions to the driver", map(_asked, asked))
    yield tile("served by a cache", map(_rate, runs))
    yield tile("device memory, peak", (words.size(run.details.peak) for run in runs))


def _launches(run: Run) -> int:
    calls = run.statistics.program.items()
    return total(counter for name, counter in calls if name.startswith("mgpuLaunch")).calls


def _asked(counter: Counter | None) -> str:
    return f"{words.count(counter.calls)} in {words.time(counter.ns)}" if counter else words.NONE


def _rate(run: Run) -> str:
    return words.rate(sum(run.statistics.caches.values(), Cache(0, 0, 0)))


# ---- the picture ----


def time(runs: Sequence[Run]) -> Iterator[Element]:
    """Where the time of the program's calls went, on one scale."""
    groups = [_groups(run) for run in runs]
    whole = max(sum(values.values()) for values in groups)
    if not whole:
        return
    bars = [
        part
        for name, values in zip(names(runs), groups, strict=True)
        for part in _bar(name, values, whole)
    ]
    used = [group for group in groups[0] if any(values[group] for values in groups)]
    keys = [
        charts.key(
            _colour(group),
            group,
            " ",
            element("b", " → ".join(words.time(values[group] or None) for values in groups)),
        )
        for group in used
    ]
    yield element(
        "section",
        element("h2", "Where the time went"),
        element("figure", *bars, element("p", *keys, class_="legend")),
        id="time",
    )


def _bar(name: str, values: Mapping[str, int], whole: int) -> Iterator[Element]:
    parts = [
        charts.Part(group, _colour(group), ns, words.time(ns)) for group, ns in values.items() if ns
    ]
    told = f"{name}: {words.time(sum(values.values()))}"
    listed = ", ".join(f"{part.name} {part.words}" for part in parts)
    yield element("p", told, class_="bar-name")
    yield charts.bar(f"{told}. {listed}", parts, whole)


def _colour(group: str) -> str:
    return "part-start" if group == START else f"part-{group}"


def _groups(run: Run) -> dict[str, int]:
    """Nanoseconds of each."""
    sums = dict.fromkeys((START, *GROUPS), 0)
    for name, counter in run.statistics.program.items():
        sums[_group(name)] += counter.ns
    sums[START] = run.start or 0
    return sums


def _group(function: str) -> str:
    return next(group for group, begins in GROUPS.items() if function.startswith(begins))
