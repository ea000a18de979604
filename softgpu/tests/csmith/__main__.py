"""Runs the programs on two machines at a time, and writes softgpu/records/csmith.json. A machine is
a chip with a HIP release."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from softgpu.tests.csmith import results, runner
from softgpu.tests.csmith.program import SEEDS, Csmith, fetch
from softgpu.tests.csmith.runner import place
from tests.devices.rocm import packages
from tests.devices.rocm.releases import find
from tests.devices.rocm.surroundings import surroundings


def main() -> int:
    chosen = [int(word) for word in sys.argv[1:]]
    try:
        outcomes = run(chosen or SEEDS)
    except packages.PackagesMissing as reason:
        print(f"Random C programs are skipped: {reason}")
        return 0
    if not chosen:
        results.write(outcomes)
    wrong = results.unexpected(outcomes)
    right = sum(what == runner.RIGHT for what, _ in outcomes.values())
    endless = sum(what == runner.ENDLESS for what, _ in outcomes.values())
    print(f"Random C programs: {right} of {len(outcomes) - endless} right, {endless} do not end")
    print("\n".join(["Not as expected:", *wrong]) if wrong else "The rest is as expected.")
    return int(bool(wrong))


def run(seeds: Sequence[int]) -> dict[int, runner.Outcome]:
    """Raises PackagesMissing."""
    csmith = fetch()
    with ThreadPoolExecutor(2) as pool:
        jobs = [
            pool.submit(_on_machine, csmith, machine, [s for s in seeds if place(s)[:2] == machine])
            for machine in sorted({place(seed)[:2] for seed in seeds})
        ]
    return {seed: outcome for job in jobs for seed, outcome in job.result().items()}


def _on_machine(
    csmith: Csmith, machine: tuple[str, str], seeds: Sequence[int]
) -> dict[int, runner.Outcome]:
    hip, chip = machine
    outcomes = runner.run(csmith, runner.Machine(surroundings(find(hip)), chip), seeds)
    print(f"HIP {hip}, {chip}: {len(seeds)} programs", flush=True)
    return outcomes


if __name__ == "__main__":
    sys.exit(main())
