"""Shows results as tables, and writes them as JSON with what they were measured on."""

from __future__ import annotations

import datetime
import json
import math
import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.figures import Figure, Result


def _number(value: float) -> str:
    """Three digits that matter, and whole numbers whole."""
    if value == int(value):
        return f"{int(value)}"
    return f"{value:.{max(2 - math.floor(math.log10(abs(value))), 0)}f}"


def _row(figure: Figure) -> list[str]:
    spread = ""
    if figure.low is not None and figure.high is not None:
        spread = f"{_number(figure.low)} … {_number(figure.high)}"
    verdict = {True: "[green]met[/]", False: "[bold red]MISSED[/]", None: ""}[figure.met]
    return [figure.name, _number(figure.value), figure.unit, spread, figure.target, verdict]


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


def show_summary(results: Sequence[Result], console: Console) -> None:
    """Prints how many targets were met, and each that was missed."""
    judged = [(r, f) for r in results for f in r.figures if f.met is not None]
    missed = [(r, f) for r, f in judged if not f.met]
    console.print(f"{len(judged) - len(missed)} of {len(judged)} targets met")
    for result, figure in missed:
        console.print(
            f"[bold red]missed[/] {result.name}: {figure.name}: "
            f"{_number(figure.value)} {figure.unit}, target {figure.target}"
        )


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _first_line(*command: str) -> str:
    """What a tool says of its version; empty without the tool."""
    if shutil.which(command[0]) is None:
        return ""
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout.partition("\n")[0].strip() if done.returncode == 0 else ""


def _figure(figure: Figure) -> dict[str, Any]:
    known = {name: value for name, value in asdict(figure).items() if value is not None}
    return known if figure.met is None else known | {"met": figure.met}


def as_json(results: Sequence[Result]) -> dict[str, Any]:
    """Everything that is needed to judge the figures later."""
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "processor": _processor(),
        "processors": len(os.sched_getaffinity(0)),
        "load": os.getloadavg()[0],  # other programs' share, averaged over a minute
        "system": platform.platform(),
        "versions": {
            "mgpu_rt": version("mgpu_rt"),
            "python": platform.python_version(),
            "compiler": _first_line("cc", "--version"),
            "valgrind": _first_line("valgrind", "--version"),
        },
        "benchmarks": {
            result.name: {
                "device": result.device,
                "method": result.method,
                "figures": [_figure(figure) for figure in result.figures],
            }
            for result in results
        },
    }


def write(results: Sequence[Result], directory: Path) -> Path:
    """Writes ``<date>.json`` into the directory and returns its path."""
    content = as_json(results)
    directory.mkdir(parents=True, exist_ok=True)
    stamp = content["date"][:19].replace(":", "")
    path = directory / f"{stamp}.json"
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return path
