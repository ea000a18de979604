"""The outcomes of the programs: kept as JSON, shown in docs/record/tested.md."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from softgpu.tests.csmith.runner import CHIPS, ENDLESS, HIPS, RIGHT, Outcome, place

RESULTS = Path(__file__).with_name("results.json")

#: Seeds that do not come out right, and whose doing it is.
EXPECTED: dict[int, str] = {}

Outcomes = Mapping[int, Outcome]


def load() -> dict[int, Outcome]:
    return {int(seed): tuple(o) for seed, o in json.loads(RESULTS.read_text()).items()}


def write(outcomes: Outcomes) -> None:
    rows = [f'"{seed}": {json.dumps(outcome)}' for seed, outcome in sorted(outcomes.items())]
    RESULTS.write_text("{\n" + ",\n".join(rows) + "\n}\n")


def unexpected(outcomes: Outcomes) -> list[str]:
    """Seeds that are not right without a reason, or right in spite of one."""
    return [
        f"seed {seed} ({', '.join(map(str, place(seed)))}): {what} {words}".rstrip()
        for seed, (what, words) in sorted(outcomes.items())
        if what != ENDLESS and (what == RIGHT) == (seed in EXPECTED)
    ]


def section(outcomes: Outcomes) -> str:
    """Returns their lines of docs/record/tested.md."""
    ended = [seed for seed, (what, _) in outcomes.items() if what != ENDLESS]
    right = [seed for seed in ended if outcomes[seed][0] == RIGHT]
    lines = [
        "## Random C programs\n",
        f"Csmith's programs of the seeds {min(outcomes)} to {max(outcomes)} run beside the same"
        " program on the processor\n(`make check-amd`). clang 22 compiles each as a kernel that"
        f" writes the checksum of all globals.\n{len(right):,} of {len(ended):,} that end come to"
        f" the same; {len(outcomes) - len(ended)} do not end on the processor either.\n",
        "| device | " + " | ".join(f"-O{n}, HIP {hip}" for n, hip in enumerate(HIPS)) + " |",
        "|---|" + "---:|" * len(HIPS),
    ]
    for chip in CHIPS:
        cells = []
        for level in range(len(HIPS)):
            mine = [seed for seed in ended if place(seed)[1:] == (chip, level)]
            cells.append(f"{sum(seed in right for seed in mine)} of {len(mine)}")
        lines.append(f"| {chip} | {' | '.join(cells)} |")
    lines += [f"\nSeed {seed}: {EXPECTED.get(seed, ' '.join(outcomes[seed]))}"
              for seed in ended if seed not in right]  # fmt: skip
    return "\n".join(lines) + "\n"
