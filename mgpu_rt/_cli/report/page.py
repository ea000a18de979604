"""Builds the page: its head, the distribution of time, and its sections in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from mgpu_rt import __version__
from mgpu_rt._cli.report.advice import Advice, advice
from mgpu_rt._cli.report.charts import Part, bar, key, over_time_section
from mgpu_rt._cli.report.format import (
    NONE,
    Element,
    code,
    count,
    duration,
    element,
    hit_rate,
    plural,
    size,
)
from mgpu_rt._cli.report.inputs import Run, names, ratios_in_turn
from mgpu_rt._cli.report.tables import caches_section, calls_section, kernels_section
from mgpu_rt._cli.stats.statistics import Cache, Counter, devices, total
from mgpu_rt._cli.stats.tables import WAITS, factor, questions, summed, waits, work
from mgpu_rt._text import shortened


def title(runs: Sequence[Run]) -> str:
    return f"{shortened(runs[-1].program)} – mgpu_rt"


def body(runs: Sequence[Run]) -> list[Element]:
    """Builds the page of one run, or of two runs, before and after."""
    sections = [
        _section("calls", "Calls", calls_section(runs)),
        _section("over-time", "Over time", over_time_section(runs)),
        _section("missed", "What missed, and why", caches_section(runs)),
        _section("kernels", "Kernels and copies", kernels_section(runs)),
        _section("files", "Where this is from", _sources(runs)),
    ]
    links = [
        element("a", section[0].text, href=f"#{section.get('id')}")
        for section in (_advice_section(runs), *sections)
    ]
    return [
        element("header", *_head(runs), element("nav", *links, aria_label="Sections")),
        element("main", *_time_section(runs), _advice_section(runs), *sections),
        element(
            "footer",
            element("p", f"Written by mgpu_rt {__version__}. “{NONE}”: not counted. "),
        ),
    ]


def _section(name: str, heading: str, content: Sequence[Element]) -> Element:
    return element("section", element("h2", heading), *content, id=name)


def _advice_section(runs: Sequence[Run]) -> Element:
    found = advice(runs[-1])
    if not found:
        none = "Nothing in these files calls for a change."
        return _section("advice", "Advice", [element("p", none, class_="quiet")])
    items = [_item(item) for item in found]
    return _section("advice", "Advice", [element("ul", *items, class_="advice")])


def _item(item: Advice) -> Element:
    return element(
        "li",
        element("h3", item.title),
        element("p", item.evidence),
        element(
            "p", element("strong", "Note: " if item.is_note else "Next: "), *_marked(item.step)
        ),
        class_="note" if item.is_note else "act",
    )


def _marked(text: str) -> list[Element | str]:
    """Formats each text between backticks as code."""
    parts = text.split("`")
    return [code(part) if number % 2 else part for number, part in enumerate(parts)]


def _sources(runs: Sequence[Run]) -> list[Element]:
    items = []
    for name, run in zip(names(runs), runs, strict=True):
        processes = [
            f"process {process.pid}"
            + (f", rank {process.rank}" if process.rank is not None else "")
            + ("" if process.by_exit else f", {process.ending}")
            for process in run.details.processes[:8]
        ]
        count = len(run.details.processes)
        rest = [f"{plural(count, 'process', 'processes')} in all"] if count > 8 else []
        sources = "; ".join(map(shortened, [*run.sources, *processes, *rest]))
        lead = f"{name}: " if len(runs) == 2 else ""
        items.append(element("li", lead, sources))
    return [element("ul", *items, class_="sources")]


# ---- the head: the outcome in a sentence, and the figures ----

#: Groups of the program's calls, by prefixes of their names; the first matching group counts.
GROUPS = {
    "modules": ("mgpuModule",),
    "launches": ("mgpuLaunch",),
    "synchronization": ("mgpuStreamSynchronize", "mgpuEventSynchronize"),
    "streams": ("mgpuStream",),
    "events": ("mgpuEvent",),
    "copies": ("mgpuMemcpy", "mgpuMemset"),
    "memory": ("mgpuMem",),
    "other": ("",),
}

START = "HIP's start"  # a group for itself, in no call's time


def _head(runs: Sequence[Run]) -> Iterator[Element]:
    """Builds the page's head: the program's name, the outcome, the figures."""
    yield element("p", "mgpu_rt report", class_="kicker")
    yield element("h1", shortened(runs[-1].program))
    yield from _failures(runs)
    yield element("p", *_warnings(runs), _outcome(runs), class_="lead")
    yield from _spread(runs)
    yield from _devices(runs)
    yield from _uncounted(runs)
    yield element("dl", *_tiles(runs), class_="tiles")


def _failures(runs: Sequence[Run]) -> Iterator[Element]:
    """Lists the failed calls above the figures, because the figures are invalid if calls failed."""
    for name, run in zip(names(runs), runs, strict=True):
        if failures := run.statistics.failures:
            yield element("p", f"{name}: {'; '.join(failures)}.", class_="lead worse")


def _uncounted(runs: Sequence[Run]) -> Iterator[Element]:
    for name, run in zip(names(runs), runs, strict=True):
        if uncounted := run.statistics.uncounted:
            yield element("p", f"{name}: {uncounted}.", class_="quiet")


def _outcome(runs: Sequence[Run]) -> str:
    sums = [total(run.statistics.program.values()) for run in runs]
    times = [counter.ns for counter in sums]
    if len(runs) == 1:
        calls = plural(sums[0].calls, "call")
        return f"The program's {calls} to MLIR's GPU runtime took {duration(times[0])}."
    is_fair = not any(run.statistics.failed for run in runs)
    told = f"The program's calls took {_compared(*times, is_fair=is_fair)}."
    if not is_fair:
        return f"{told} Calls failed, so these times do not compare."
    starts = [duration(run.start) for run in runs]
    if set(starts) == {NONE}:
        return told
    return (
        f"{told} HIP's start is in neither: each run pays it once, {starts[0]} before and "
        f"{starts[1]} after."
    )


def _warnings(runs: Sequence[Run]) -> Iterator[Element]:
    """Adds a warning to the headline if no GPU was timed."""
    for warning in {device.warning for device in devices(run.statistics for run in runs)} - {""}:
        yield element("strong", f"{warning}. ", class_="act")


def _spread(runs: Sequence[Run]) -> Iterator[Element]:
    """Writes a note that each side, before and after, ran only once. With two traces, the note adds
    the lowest and the highest ratio among ten parts of the calls."""
    if len(runs) != 2 or any(run.statistics.failed for run in runs):
        return
    before, after = (run.trace for run in runs)
    ratios = ratios_in_turn(before, after) if before and after else []
    least, most = factor(min(ratios, default=None)), factor(max(ratios, default=None))
    told = f" In ten equal parts of the calls, the ratio is {least} to {most}." if ratios else ""
    yield element("p", f"Each side ran once.{told}", class_="quiet")


def _devices(runs: Sequence[Run]) -> Iterator[Element]:
    for device in devices(run.statistics for run in runs):
        yield element("p", f"On {device.description}.", class_="quiet")


def _compared(before: int, after: int, *, is_fair: bool) -> str:
    """Shows no ratio if calls failed, since failed calls do less work than requested."""
    told = f"{duration(before)} before and {duration(after)} after"
    if not before or not after or not is_fair:
        return told
    if before >= after:
        return f"{told}, {factor(before / after)} times as fast"
    return f"{told}, {factor(after / before)} times as long"


# ---- figures ----


def _tiles(runs: Sequence[Run]) -> Iterator[Element]:
    def tile(name: str, values: Iterable[str]) -> Element:
        *earlier, last = values
        known = (value for value in earlier if {value, last} != {NONE})
        old = [element("dd", f"{value} before", class_="old") for value in known]
        return element("div", element("dt", name), element("dd", last), *old)

    programs = [summed(run.statistics.program) for run in runs]
    asked = [summed(questions(run.statistics.driver)) for run in runs]
    yield tile("time in calls", (duration(c.ns if c else None) for c in programs))
    yield tile("launches", (count(_launches(run)) for run in runs))
    yield tile("calls of the driver", map(_driver_calls, runs))
    if any(asked):
        yield tile("questions to the driver", map(_asked_cell, asked))
    yield tile("served by a cache", map(_hit_rate, runs))
    yield tile("device memory, peak", (size(run.details.peak) for run in runs))


def _launches(run: Run) -> int:
    calls = run.statistics.program.items()
    return total(counter for name, counter in calls if name.startswith("mgpuLaunch")).calls


def _driver_calls(run: Run) -> str:
    counter = summed(work(run.statistics.driver))
    return count(counter.calls if counter and not run.statistics.overridden else None)


def _asked_cell(counter: Counter | None) -> str:
    return f"{count(counter.calls)} in {duration(counter.ns)}" if counter else NONE


def _hit_rate(run: Run) -> str:
    return hit_rate(sum(run.statistics.caches.values(), Cache(0, 0, 0)))


# ---- the picture ----


def _time_section(runs: Sequence[Run]) -> Iterator[Element]:
    """Shows the time of the program's calls by group, on a common scale."""
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
        key(
            _colour(group),
            group,
            " ",
            element("b", " → ".join(duration(values[group] or None) for values in groups)),
        )
        for group in used
    ]
    yield element(
        "section",
        element("h2", "Where the time went"),
        element("figure", *bars, element("p", *keys, class_="legend"), *_waits(runs)),
        id="time",
    )


def _waits(runs: Sequence[Run]) -> Iterator[Element]:
    """Shows the time in which the driver waited for the GPU, in calls of several groups."""
    waited = [waits(run.statistics.driver) for run in runs]
    if any(counter.calls for counter in waited):
        times = " → ".join(duration(counter.ns or None) for counter in waited)
        told = (
            f"HIP waited for the GPU {times} of these times, in calls of several groups "
            f"({', '.join(WAITS)}). HIP's other functions may wait too."
        )
        yield element("figcaption", told)


def _bar(name: str, values: Mapping[str, int], whole: int) -> Iterator[Element]:
    parts = [Part(group, _colour(group), ns, duration(ns)) for group, ns in values.items() if ns]
    start = ", with HIP's start" if values[START] else ""
    told = f"{name}: {duration(sum(values.values()))}{start}"
    listed = ", ".join(f"{part.name} {part.label}" for part in parts)
    yield element("p", told, class_="bar-name")
    yield bar(f"{told}. {listed}", parts, whole)


def _colour(group: str) -> str:
    return "part-start" if group == START else f"part-{group}"


def _groups(run: Run) -> dict[str, int]:
    """Returns the time of each group in nanoseconds."""
    sums = dict.fromkeys((START, *GROUPS), 0)
    for name, counter in run.statistics.program.items():
        sums[_group(name)] += counter.ns
    sums[START] = run.start or 0
    return sums


def _group(function: str) -> str:
    return next(group for group, begins in GROUPS.items() if function.startswith(begins))
