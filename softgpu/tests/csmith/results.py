"""Stores the programs' outcomes as JSON, and shows the outcomes in docs/record/tested.md."""

from __future__ import annotations

from collections.abc import Mapping

from bench import records
from softgpu.tests.csmith.runner import CHIPS, ENDLESS, HIPS, RIGHT, Outcome, place

RESULTS = records.DEVICE / "csmith.json"

#: Seeds with an outcome other than RIGHT, each with the cause.
EXPECTED: dict[int, str] = {}

Outcomes = Mapping[int, Outcome]


def load() -> dict[int, Outcome]:
    found = {seed: (what, words) for what, words, seeds in records.load(RESULTS) for seed in seeds}
    return dict(sorted(found.items()))


def write(outcomes: Outcomes) -> None:
    """Writes a line for each outcome, with the seeds that have this outcome."""
    seeds: dict[Outcome, list[int]] = {}
    for seed, outcome in sorted(outcomes.items()):
        seeds.setdefault(outcome, []).append(seed)
    records.save([[*outcome, found] for outcome, found in seeds.items()], RESULTS)


def unexpected(outcomes: Outcomes) -> list[str]:
    """Returns a line for each unexpected outcome. The outcome RIGHT is unexpected for a seed in
    EXPECTED, and any other outcome is unexpected for any other seed. Ignores endless programs."""
    return [
        f"seed {seed} ({', '.join(map(str, place(seed)))}): {what} {words}".rstrip()
        for seed, (what, words) in sorted(outcomes.items())
        if what != ENDLESS and (what == RIGHT) == (seed in EXPECTED)
    ]


def section(outcomes: Outcomes) -> str:
    """Returns the section about random C programs for docs/record/tested.md."""
    ended = [seed for seed, (what, _) in outcomes.items() if what != ENDLESS]
    right = [seed for seed in ended if outcomes[seed][0] == RIGHT]
    lines = [
        "## Random C programs\n",
        f"Csmith's programs of the seeds {min(outcomes)} to {max(outcomes)} run beside the same"
        " program on the processor\n(`make check-amd`). clang 22 compiles each program as a kernel"
        f" that writes the checksum of all globals.\n{len(right):,} of the {len(ended):,} programs"
        f" that end give the right checksums; {len(outcomes) - len(ended)} end neither as a kernel"
        " nor on the processor.\n",
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
