"""Makes the documents' tables from the results, so that the tables show measured values."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from bench import records
from bench.setup.sides import GRAPH, HOISTED, LAZY, LLVM, OURS, SERIAL, STOCK, TITLES
from mgpu_rt._selftest import result

#: The rows of the fast path's table, measured on a stub of HIP. Each row contains a benchmark's
#: key, a figure's name and a description.
FAST_PATH = (
    *(
        (
            "calls-stub",
            f"{side}, {release} ({calls} calls), beyond hoisted",
            f"{calls} calls, {side}",
        )
        for side in ("mgpu_rt exclusive", "mgpu_rt")
        for calls, release in ((7, "LLVM 13 to 20"), (5, "LLVM 21 to 24"))
    ),
    (
        "calls-stub",
        "mgpu_rt, MGPU_RT_STATS on, LLVM 13 to 20 (7 calls), beyond hoisted",
        "7 calls, MGPU_RT_STATS on",
    ),
    ("startup-stub", "dlopen", "loading the library"),
    (
        "startup-stub",
        "first launch, with Python, beyond HIP's own",
        "first launch, with Python, which starts a second later",
    ),
    (
        "startup-stub",
        "first launch, MGPU_RT_MANAGER=off, beyond HIP's own",
        "first launch, MGPU_RT_MANAGER=off",
    ),
)


def number(value: float) -> str:
    """Formats a value with three significant digits. Whole numbers, and numbers from 1000 on, have
    no decimals."""
    if not math.isfinite(value) or value == int(value) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.{max(2 - math.floor(math.log10(abs(value))), 0)}f}"


def fast_path(results: dict[str, Any], _device: str) -> str:
    """Shows the library's own cost, measured on a stub of HIP whose functions return at once."""
    benchmarks = results["benchmarks"]
    lines = [
        f"{benchmarks['calls-stub']['device']}, {results['date'][:10]}:",
        "",
        "| what the library adds | |",
        "|---|---|",
    ]
    for key, name, words in FAST_PATH:
        figures = {figure["name"]: figure for figure in benchmarks[key]["figures"]}
        lines.append(f"| {words} | {number(figures[name]['value'])} {figures[name]['unit']} |")
    return "\n".join(lines)


def programs(results: dict[str, Any], device: str) -> str:
    """Shows the microseconds per iteration of each program on one device, by side."""
    return _by_side(
        results,
        f"programs-{device}",
        ("program", "µs an iteration"),
        lambda row: f"{row['program']}, LLVM {row['llvm']}",
    )


def hosts(results: dict[str, Any], device: str) -> str:
    """Returns the table of loops that run in a host process, such as mlir-runner or Python."""
    return _by_side(
        results,
        f"hosts-{device}",
        ("program in a host", "µs an iteration in another host"),
        lambda row: f"{row['program']} in {row['host']}, LLVM {row['llvm']}",
    )


def devices(results: dict[str, Any], device: str) -> str:
    """Shows threads on one device and on several devices, by side."""
    return _by_side(
        results,
        f"devices-{device}",
        ("threads, devices", "µs until the last thread is done"),
        lambda row: f"{row['threads']}, {row['devices']}",
    )


def _by_side(
    results: dict[str, Any],
    key: str,
    words: tuple[str, str],
    label: Callable[[dict[str, Any]], str],
) -> str:
    """Builds a table with a row for each label and a column for each side. `words` names the labels
    and the unit."""
    benchmark = results["benchmarks"][key]
    rows = [row for row in benchmark["data"] if "us" in row]
    taken = {(label(row), row["side"]): row["us"] for row in rows}
    known = {row["side"] for row in rows} - {SERIAL}
    sides = [side for side in TITLES if side in known]
    what, unit = words
    lines = [
        f"{benchmark['device']}, {results['date'][:10]}, {unit}:",
        "",
        f"| {what} | " + " | ".join(TITLES[side] for side in sides) + " |",
        "|---" * (len(sides) + 1) + "|",
    ]
    for name in dict.fromkeys(map(label, rows)):
        cells = [taken.get((name, side)) for side in sides]
        shown = " | ".join(number(cell) if cell is not None else "–" for cell in cells)
        lines.append(f"| {name} | {shown} |")
    return "\n".join(lines)


def modules(results: dict[str, Any], device: str) -> str:
    """Shows the program that holds many modules and uses a few of them."""
    benchmark = results["benchmarks"][f"modules-{device}"]
    lines = [f"{benchmark['device']}, {results['date'][:10]}:", "", "| | ms |", "|---|---|"]
    lines += [
        f"| {figure['name']} | {number(figure['value'])} |" for figure in benchmark["figures"]
    ]
    return "\n".join(lines)


def models(results: dict[str, Any], device: str) -> str:
    """Shows the microseconds of a forward pass of each model in each variant. The columns are the
    times before and after, and the ratio. The times with --exclusive --lazy and by hand follow if
    the run measured these times."""
    benchmark = results["benchmarks"][f"models-{device}"]
    rows = benchmark["data"]
    base = LLVM if any(row.get("side") == LLVM for row in rows) else STOCK
    taken = {(r["model"], r["variant"], r["llvm"], r["side"]): r["us"] for r in rows if "us" in r}
    releases = sorted({row["llvm"] for row in rows})
    measured = {row.get("side") for row in rows}
    more = [side for side in (LAZY, HOISTED) if side in measured]
    names = [TITLES[base], TITLES[OURS], "ratio of medians", *(TITLES[side] for side in more)]
    heads = [f"LLVM {llvm}: {' | '.join(names)}" for llvm in releases]
    lines = [
        f"{benchmark['device']}, {results['date'][:10]}, µs a forward pass:",
        "",
        f"| | {' | '.join(heads)} |",
        "|---" + "|---:" * (len(names) * len(releases)) + "|",
    ]
    for model, variant in dict.fromkeys((row["model"], row["variant"]) for row in rows):
        cells = [
            _before_and_after(
                *(taken.get((model, variant, llvm, side)) for side in (base, OURS, *more))
            )
            for llvm in releases
        ]
        lines.append(f"| {model}, {variant} | {' | '.join(cells)} |")
    return "\n".join(lines)


def graphs(results: dict[str, Any], device: str) -> str:
    """Shows the microseconds of a pass of each program, as separate calls and as a graph, and the
    time to build the graph."""
    benchmark = results["benchmarks"][f"graphs-{device}"]
    taken: dict[str, dict[str, dict[str, Any]]] = {}
    for row in benchmark["data"]:
        name = ", ".join(filter(None, (row["program"], row["variant"], f"LLVM {row['llvm']}")))
        taken.setdefault(name, {})[row["side"]] = row
    known = {side for rows in taken.values() for side in rows}
    sides = [side for side in TITLES if side in known]
    lines = [
        f"{benchmark['device']}, {results['date'][:10]}, µs per pass. The last column is the "
        "time to build our graph, as a multiple of a pass without a graph:",
        "",
        f"| | {' | '.join(TITLES[side] for side in sides)} | building |",
        "|---" + "|---:" * (len(sides) + 1) + "|",
    ]
    for name, rows in taken.items():
        cells = [number(rows[side]["us"]) if side in rows else "–" for side in sides]
        building = number(rows[GRAPH]["building_us"] / rows[OURS]["us"])
        lines.append(f"| {name} | {' | '.join(cells)} | {building} |")
    return "\n".join(lines)


def _before_and_after(before: float | None, after: float | None, *more: float | None) -> str:
    ratio = before / after if before and after else None
    values = (before, after, ratio, *more)
    return " | ".join("–" if value is None else number(value) for value in values)


def targets(results: dict[str, Any], device: str) -> str:
    """Shows all figures of one device that have a target."""
    lines = ["| figure | median; of ratios, paired | target | |", "|---|---|---|---|"]
    for benchmark in results["benchmarks"].values():
        if benchmark["on"] != device or benchmark["name"] == "breakdown":
            continue
        for figure in benchmark["figures"]:
            if "met" in figure:
                value = f"{number(figure['value'])} {figure['unit']}".strip()
                verdict = "met" if figure["met"] else "**missed**"
                lines.append(f"| {figure['name']} | {value} | {_bound(figure)} | {verdict} |")
    return "\n".join(lines)


def _bound(figure: dict[str, Any]) -> str:
    for key, sign in (("at_most", "≤"), ("at_least", "≥"), ("exactly", "=")):
        if key in figure:
            return f"{sign} {figure[key]:g}"
    return ""


def latency(results: dict[str, Any], device: str) -> str:
    """Shows, for each side, the median and the 90th percentile of the delays before and after a
    kernel."""
    rows = results["benchmarks"][f"latency-{device}"]["data"]
    taken = {(row["side"], row["what"]): row for row in rows}
    lines = [
        "| µs, median (90 % within) | synchronise to kernel | from its end to return |",
        "|---|---|---|",
    ]
    for side in dict.fromkeys(row["side"] for row in rows):
        cells = (taken[side, what] for what in ("start", "end"))
        words = " | ".join(f"{_at(row, 50)} ({_at(row, 90)})" for row in cells)
        lines.append(f"| {side} | {words} |")
    return "\n".join(lines)


def replay(results: dict[str, Any], device: str) -> str:
    """Shows the time to replay each trace of allocations in three ways."""
    benchmark = results["benchmarks"][f"replay-{device}"]
    lines = [
        f"{benchmark['device']}, {results['date'][:10]}, µs for each trace:",
        "",
        "| allocations of | hipMalloc, hipFree | hipMallocAsync, hipFreeAsync | mgpu_rt |",
        "|---|---|---|---|",
    ]
    values = {figure["name"]: figure["value"] for figure in benchmark["figures"]}
    for name in values:
        program, _, way = name.partition(", ")
        if way == "mgpu_rt":
            ways = ("hipMalloc and hipFree", "hipMallocAsync", "mgpu_rt")
            cells = (number(values[f"{program}, {way}"]) for way in ways)
            lines.append(f"| {program} | {' | '.join(cells)} |")
    return "\n".join(lines)


def in_python(results: dict[str, Any], device: str) -> str:
    """Shows the time of a launch with each runtime in Python, with seven calls and with five
    calls."""
    benchmark = results["benchmarks"][f"in_python-{device}"]
    taken: dict[str, dict[str, dict[str, Any]]] = {}
    for figure in benchmark["figures"]:
        calls, _, name = figure["name"].partition(", ")
        if figure["unit"] == "µs" and not name.endswith("beyond native"):
            taken.setdefault(name, {})[calls] = figure
    heads = list(next(iter(taken.values())))
    lines = [
        f"{benchmark['device']}, {results['date'][:10]}, µs a launch, median and middle 80 %:",
        "",
        f"| | {' | '.join(heads)} |",
        "|---" + "|---:" * len(heads) + "|",
    ]
    for name, by_calls in taken.items():
        cells = (
            f"{number(f['value'])} ({number(f['low'])} to {number(f['high'])})"
            for f in by_calls.values()
        )
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def objects(results: dict[str, Any], device: str) -> str:
    """Shows the time of each kind of call by the number of objects."""
    benchmark = results["benchmarks"][f"objects-{device}"]
    taken: dict[str, dict[int, str]] = {}
    for figure in benchmark["figures"]:
        kind, _, words = figure["name"].rpartition(", ")
        taken.setdefault(kind, {})[int(words.split()[0])] = number(figure["value"])
    heads = sorted(next(iter(taken.values())))
    lines = [
        f"{benchmark['device']}, {results['date'][:10]}, ns a call, by the number of objects:",
        "",
        f"| | {' | '.join(f'{head:,}' for head in heads)} |",
        "|---" + "|---:" * len(heads) + "|",
    ]
    lines += [
        f"| {kind} | {' | '.join(by[head] for head in heads)} |" for kind, by in taken.items()
    ]
    return "\n".join(lines)


def sparse(results: dict[str, Any], device: str) -> str:
    """Shows the times of three ways to multiply a sparse matrix by a dense matrix."""
    benchmark = results["benchmarks"][f"sparse-{device}"]
    values = {figure["name"]: figure["value"] for figure in benchmark["figures"]}
    lines = [
        f"{benchmark['device']}, {results['date'][:10]}, medians: µs a product, and "
        "ratios of the same turn:",
        "",
        "| matrix | LLVM's calls | by hand | mgpu_rt | "
        "mgpu_rt / LLVM's calls | mgpu_rt / by hand |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    ways = ("the calls of LLVM's library", "by hand", "mgpu_rt")
    ratios = ("mgpu_rt / LLVM's calls", "mgpu_rt / by hand")
    for title in dict.fromkeys(name.rpartition(", ")[0] for name in values):
        cells = [number(values[f"{title}, {way}"]) for way in ways]
        cells += [f"{values[f'{title}, {ratio}']:.2f}" for ratio in ratios]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(lines)


def emulator(results: dict[str, Any], device: str) -> str:
    """Shows the speed of softgpu."""
    lines = ["| | fastest, or median | target |", "|---|---:|---:|"]
    for figure in results["benchmarks"][f"emulator-{device}"]["figures"]:
        target = f"{figure['at_most']:g}" if "at_most" in figure else ""
        lines.append(f"| {figure['name']} | {figure['value']:,.4g} {figure['unit']} | {target} |")
    return "\n".join(lines)


def selftests(documents: list[dict[str, Any]], _device: str) -> str:
    """Shows the findings of `mgpu-rt selftest`, a row for each file. The files may come from any
    machine."""
    lines = [
        "| device | HIP, driver | as with stock | µs: " + ", ".join(map(_loop_name, _LOOPS)) + " | "
        "gain |",
        "|---|---|---|---|---|",
    ]
    for document in map(result.upgraded, documents):
        if faults := result.faults(document):
            raise ValueError(f"a selftest's file is not as its schema has it: {faults[0]}")
        device = document["device"]
        taken = {(t["program"], t["llvm"], t["side"]): t["us"] for t in document["fast"]}
        before, after = ([taken.get((*loop, s)) for loop in _LOOPS] for s in ("stock", "library"))
        gains = (b / a if a and b else None for b, a in zip(before, after, strict=True))
        cells = (
            f"{device['name']} ({device['target']})",
            f"{device['hip']}, {device['driver']}",
            _right(document["right"]),
            f"{_numbers(before)} with stock's; {_numbers(after)} with mgpu_rt",
            _numbers(gains),
        )
        lines.append("| " + " | ".join(_plain(cell) for cell in cells) + " |")
    return "\n".join(lines)


#: The table shows these loops of a selftest; a loop is a program and an LLVM release.
_LOOPS = (("forum", 19), ("forum", 22), ("churn", 22), ("layers", 22))


def _loop_name(loop: tuple[str, int]) -> str:
    return f"{loop[0]} {loop[1]}"


def _right(parts: list[dict[str, Any]]) -> str:
    compared, total = (sum(part[name] for part in parts) for name in ("compared", "total"))
    sides = [wrong["side"] for part in parts for wrong in part["wrong"]]
    failed = sides.count(result.HIP)
    wrong = len(sides) - failed
    said = f"all {total}" if compared == total else f"{compared} of {total} compared"
    if wrong:
        said = f"**{wrong} differ** of {total}"
    return f"{said}; HIP failed in {failed}" if failed else said


def _numbers(values: Iterable[float | None]) -> str:
    return ", ".join("–" if value is None else number(value) for value in values)


def _plain(text: str) -> str:
    """Returns the text, with a space for each character that would end a cell or begin markup."""
    return re.sub(r"[|<>`\n]", " ", text)


def _at(row: dict[str, Any], percent: int) -> str:
    return number(row["us"][row["percentiles"].index(percent)])


#: The function that builds each kind of table. Comments in the documents name the kinds.
TABLES: dict[str, Callable[[Any, str], str]] = {
    "fast-path": fast_path,
    "programs": programs,
    "hosts": hosts,
    "devices": devices,
    "modules": modules,
    "models": models,
    "graphs": graphs,
    "targets": targets,
    "latency": latency,
    "replay": replay,
    "in-python": in_python,
    "objects": objects,
    "emulator": emulator,
    "sparse": sparse,
    "selftest": selftests,
}

#: The files that show tables.
SHOWN_IN = ("docs/record/figures.md", "softgpu/REFERENCE.md")

#: A table in a document: <!-- table KIND FILE DEVICE --> the table <!-- end -->; FILE may be a
#: folder.
_SHOWN = re.compile(r"<!-- table (\S+) (\S+) (\S+) -->\n(.*?)<!-- end -->", re.DOTALL)


def refreshed(text: str, root: Path) -> str:
    """Returns the text with every table rebuilt from the results that the table names."""

    def table(match: re.Match[str]) -> str:
        kind, file, device = match.group(1, 2, 3)
        results = _read(root / file)
        shown = TABLES[kind](results, device)
        return f"<!-- table {kind} {file} {device} -->\n{shown}\n<!-- end -->"

    return _SHOWN.sub(table, text)


def _read(path: Path) -> Any:
    if path.suffix != ".json":
        return [_read(file) for file in sorted(path.glob("*.json"))]
    return records.load(path)
