"""The README's tables, from the results: what is shown there is what was measured."""

from __future__ import annotations

import math
from typing import Any

from bench.sides import HOISTED, LAZY, LLVM, OURS, PLAIN, STOCK, WORDS

ORDER = (STOCK, LLVM, PLAIN, OURS, LAZY, HOISTED)


def number(value: float) -> str:
    """Three digits that matter."""
    if value >= 1000:
        return f"{value:,.0f}"
    digits = max(2 - math.floor(math.log10(abs(value))), 0) if value else 0
    return f"{value:.{digits}f}"


def markdown(results: dict[str, Any], device: str) -> str:
    """Microseconds an iteration of each program on one device, by side."""
    benchmark = results["benchmarks"][f"programs-{device}"]
    rows = benchmark["data"]
    taken = {(row["program"], row["llvm"], row["side"]): row["us"] for row in rows}
    sides = [side for side in ORDER if any(row["side"] == side for row in rows)]
    lines = [
        f"{benchmark['device']}, {results['date'][:10]}, µs an iteration:",
        "",
        "| program | " + " | ".join(WORDS[side] for side in sides) + " |",
        "|---" * (len(sides) + 1) + "|",
    ]
    for program, llvm in dict.fromkeys((row["program"], row["llvm"]) for row in rows):
        cells = [taken.get((program, llvm, side)) for side in sides]
        words = " | ".join(number(cell) if cell is not None else "–" for cell in cells)
        lines.append(f"| {program}, LLVM {llvm} | {words} |")
    return "\n".join(lines)
