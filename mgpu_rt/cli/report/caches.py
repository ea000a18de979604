"""What missed: the caches, and the modules with the reason why each load is one of the driver's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mgpu_rt.cli.report import words
from mgpu_rt.cli.report.markup import Content, Element, code, element
from mgpu_rt.cli.report.runs import Run
from mgpu_rt.cli.report.tables import table

KERNELS = 4  # of a module that are named

#: The calls that a cache serves.
_SERVED = {
    "modules": ("mgpuModuleLoad", "mgpuModuleLoadJIT"),
    "functions": ("mgpuModuleGetFunction",),
    "streams": ("mgpuStreamCreate",),
    "events": ("mgpuEventCreate",),
    "memory": ("mgpuMemAlloc",),
}


def section(runs: Sequence[Run]) -> list[Element]:
    """Of the last run."""
    run = runs[-1]
    if not run.statistics.caches:
        told = f"{words.NONE} No statistics were given, which count what missed."
        return [element("p", told, class_="quiet")]
    made: list[Element] = []
    if run.is_stock:
        made.append(element("p", "No cache was at work in this run.", class_="quiet"))
    caption = "Caches" if len(runs) == 1 else "Caches, after"
    heads = ["cache", "hits", "misses", "passed on", "rate", "given back"]
    rows = [_cache(run, name) for name in run.statistics.caches]
    made.append(table(caption, heads, rows))
    if graphs := run.statistics.graphs.words:
        made.append(element("p", f"{graphs[0].upper()}{graphs[1:]}."))
    return [*made, *_modules(run)]


def _cache(run: Run, name: str) -> list[Content]:
    cache = run.statistics.caches[name]
    if not (cache.hits or cache.misses):
        return [name, *[words.NONE] * 5]
    program = run.statistics.program
    asked = sum(program[f].calls for f in _SERVED.get(name, ()) if f in program)
    passed_on = max(0, asked - cache.hits - cache.misses)
    counts = map(words.count, (cache.hits, cache.misses, passed_on))
    return [name, *counts, words.rate(cache), words.count(cache.evictions)]


def _modules(run: Run) -> Iterator[Element]:
    if run.details.modules is None:
        return
    heads = ["image", "bytes", "loads", "by the driver", "kernels", "why each time"]
    rows = [
        [
            code(module.image),
            *map(words.count, (module.bytes, module.loads, module.driver_loads)),
            ", ".join(module.kernels[:KERNELS]) + (" …" if len(module.kernels) > KERNELS else ""),
            module.why or words.NONE,
        ]
        for module in sorted(run.details.modules, key=lambda module: -module.driver_loads)
    ]
    yield table("Modules", heads, rows, words=("kernels", "why each time"))
