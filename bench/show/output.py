"""Prints results as tables, and writes them as JSON with a description of the machine."""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bench import records
from bench.setup.device import Device
from bench.show.figures import Figure, Result
from bench.show.table import number
from mgpu_rt import __version__


def _row(figure: Figure) -> list[str]:
    spread = ""
    if figure.low is not None and figure.high is not None:
        spread = f"{number(figure.low)} … {number(figure.high)}"
    verdict = {True: "[green]met[/]", False: "[bold red]MISSED[/]", None: ""}[figure.met]
    return [figure.name, number(figure.value), figure.unit, spread, figure.target, verdict]


def show(result: Result, console: Console) -> None:
    """Prints one benchmark's table."""
    table = Table(title=f"{result.name}: {result.device}", caption=result.method)
    table.title_justify = table.caption_justify = "left"
    table.add_column("figure")
    table.add_column("median", justify="right")
    table.add_column("unit")
    table.add_column("middle 80 %", justify="right")
    table.add_column("target", justify="right")
    table.add_column("")
    for figure in result.figures:
        table.add_row(*_row(figure))
    console.print(table)
    for reason, rows in _left_out(result).items():
        console.print(f"left out: {'; '.join(rows)}: {escape(reason)}")


def _left_out(result: Result) -> dict[str, list[str]]:
    """Returns the rows that were not measured, grouped by the reason."""
    reasons: dict[str, list[str]] = {}
    for row in result.data:
        for key in {"left_out", "failed"} & set(row):
            words = [str(value) for name, value in row.items() if name != key]
            reasons.setdefault(row[key], []).append(", ".join(words))
    return reasons


def show_summary(results: Sequence[Result], console: Console) -> None:
    """Prints how many targets were met, and each target that was missed."""
    judged = [(r, f) for r in results for f in r.figures if f.met is not None]
    missed = [(r, f) for r, f in judged if not f.met]
    console.print(f"{len(judged) - len(missed)} of {len(judged)} targets met")
    for result, figure in missed:
        console.print(
            f"[bold red]missed[/] {result.key}: {figure.name}: "
            f"{number(figure.value)} {figure.unit}, target {figure.target}"
        )


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _figure(figure: Figure) -> dict[str, Any]:
    known = {name: value for name, value in asdict(figure).items() if value is not None}
    return known if figure.met is None else known | {"met": figure.met}


def as_json(results: Sequence[Result], devices: Sequence[Device], load: float) -> dict[str, Any]:
    """Returns all facts that are needed to judge the figures later."""
    return {
        "date": _now(),
        "processor": _processor(),
        "processors": len(os.sched_getaffinity(0)),
        "load": load,
        "system": platform.platform(),
        "versions": {"mgpu_rt": __version__, "python": platform.python_version()},
        "devices": {on.name: {"title": on.title, "driver": on.driver} for on in devices},
        "benchmarks": {
            result.key: {
                "name": result.name,
                "on": result.on,
                "device": result.device,
                "method": result.method,
                "figures": [_figure(figure) for figure in result.figures],
                "data": result.data,
            }
            for result in results
        },
    }


def path_in(directory: Path, devices: Sequence[Device]) -> Path:
    """Returns ``<time>-<devices>.json`` in the directory, or the path itself if it ends in
    .json."""
    if directory.suffix == ".json":
        return directory
    stamp = _now()[:19].replace(":", "")
    return directory / f"{stamp}-{'-'.join(on.name for on in devices)}.json"


def write(
    results: Sequence[Result],
    devices: Sequence[Device],
    path: Path,
    load: float,
    before: dict[str, Any] | None = None,
) -> None:
    """Writes the file; a new file replaces an earlier file. ``load`` is the load by other programs,
    before the run. ``before`` is an earlier part of the run, whose results the file keeps."""
    content = as_json(results, devices, load)
    if before:
        parts = dict(before["benchmarks"])
        for key, part in content["benchmarks"].items():
            if key in parts:  # other models
                part = {**part, **{of: parts[key][of] + part[of] for of in ("figures", "data")}}
            parts[key] = part
        known = {**before["devices"], **content["devices"]}
        content = {**before, "devices": known, "benchmarks": parts}
    records.save(content, path)


def _now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
