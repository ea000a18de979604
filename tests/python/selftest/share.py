"""Finds the selftest's check that detects the absence of each proof. The script removes one proof
at a time from the library, and uses the emulated device.

    python -m tests.python.selftest.share [--rest | --all] [PROOF ...]

The command builds the library without each proof of proofs.md, one at a time, and plays the
programs of tests/proofs/programs. Some programs need two devices, or reset a device. The proof's
witness `selftest CHECK` in the table of proofs.md is played first. If this check does not
report the library as wrong, the first check that does becomes the witness. If no check reports the
library, the row gives the reason. Until the reason is known, the row has "selftest: open", which a
test refuses. The table is written after each proof, so that --rest can continue an interrupted run.
Without --all, the command tries no proof whose row gives a reason.
"""

from __future__ import annotations

import argparse
import dataclasses
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from mgpu_rt._selftest import bundle, right
from mgpu_rt._selftest.machine import Machine, find
from mgpu_rt._selftest.result import Part
from tests.proofs.mutants import table
from tests.proofs.programs import groups
from tests.support.child import BUILD, environment
from tests.support.variants import without

TWO = "gfx90a,gfx90a"
PLAYER = BUILD / "random_driver" / "player"
WITNESS = re.compile(r"(?:, )?`selftest ([^`]*)`")
#: Matches the reason why no check detects the missing proof; proofs.md explains each reason.
REASON = re.compile(r", selftest: (\w+)")
REASONS = ("race", "failure", "cost", "device", "words", "outside")


def checks_of(library: Path, folder: Path, names: Sequence[str] = ()) -> list[right.Check]:
    """Returns the checks of `library` with the given names: programs of tests/proofs/programs, and
    the bundle's checks. If `names` is empty, returns the check of each group of programs."""
    read = bundle.read()
    found = find("softgpu", read, library, base=environment("softgpu", MGPU_RT_SOFTGPU=TWO))
    read.lay_out(found.chip, folder)
    found = dataclasses.replace(found, player=PLAYER)
    one, pinned = _one(found), _pins(found)
    checks = [
        right.sequence_check(
            "proofs", group.check, group.case(), pinned if group.pins else one, folder / "images"
        )
        for group in groups()
    ]
    if names:
        checks += [c for c in right.checks(read, one, folder) if c.part != "proofs"]
    return [check for check in checks if not names or check.name in names]


def _one(found: Machine) -> Machine:
    """Returns one of the two emulated devices, for checks that need a single device."""
    alone = {**found.environment, "MGPU_RT_SOFTGPU": TWO.partition(",")[0]}
    return dataclasses.replace(found, environment=alone, both=found.environment)


def _pins(found: Machine) -> Machine:
    """Returns the stub of HIP with HIPSTUB_PINS=1. With this setting, the stub copies through the
    pages that were registered, as a GPU may do."""
    stub = environment("stub", HIPSTUB_PINS="1")
    search = found.environment["LD_LIBRARY_PATH"].partition(":")[0]
    return dataclasses.replace(found, environment={**stub, "LD_LIBRARY_PATH": search}, both=None)


def calls_wrong(check: right.Check) -> bool:
    """Returns whether a check reports the library as wrong. Both sides of the check run this
    library; one side has stock's behaviour."""
    parts: list[Part] = []
    right.perform([check], parts, lambda text: None, "")
    return bool(parts[0].wrong)


def noticed_by(library: Path, witness: str) -> str:
    """Returns the first check that reports the library as wrong, and tries `witness` before the
    others; "" if no check does."""
    with tempfile.TemporaryDirectory() as folder:
        checks = sorted(checks_of(library, Path(folder)), key=lambda one: one.name != witness)
        return next((check.name for check in checks if calls_wrong(check)), "")


def write(proof: str, check: str) -> None:
    """Writes a witness into the row of a proof. If there is no witness, the row keeps the
    reason."""
    text = table.PAGE.read_text(encoding="utf-8")
    row = _row(text, proof)
    reason = REASON.search(row)
    word = f", `selftest {check}`" if check else reason[0] if reason else ", selftest: open"
    tests = REASON.sub("", WITNESS.sub("", row)).removesuffix(" |") + word
    table.PAGE.write_text(text.replace(row, f"{tests} |"), encoding="utf-8")


def _row(text: str, proof: str) -> str:
    (row,) = (line for line in text.splitlines() if line.startswith(f"| `{proof}` |"))
    return row


def chosen(names: Sequence[str], rest: bool, every: bool) -> Iterator[table.Row]:
    text = table.PAGE.read_text(encoding="utf-8")
    for row in table.rows():
        line = _row(text, row.proof)
        has_witness, has_reason = bool(WITNESS.search(line)), bool(REASON.search(line))
        if row.proof in names if names else every or not (has_reason or (rest and has_witness)):
            yield row


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests.python.selftest.share")
    parser.add_argument("--rest", action="store_true", help="only rows that say nothing yet")
    parser.add_argument("--all", action="store_true", help="rows that give a reason, too")
    parser.add_argument("proof", nargs="*")
    options = parser.parse_args()
    noticed = 0
    rows = list(chosen(options.proof, options.rest, options.all))
    for row in rows:
        witness = WITNESS.search(_row(table.PAGE.read_text(encoding="utf-8"), row.proof))
        with without(row.proof) as library:
            check = noticed_by(library, witness[1] if witness else "")
        write(row.proof, check)
        noticed += bool(check)
        print(f"{row.proof}: {check or 'not noticed'}", flush=True)
    print(f"{noticed} of {len(rows)}")


if __name__ == "__main__":
    main()
