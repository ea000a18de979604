"""The selftest's checks over the emulated device, for a library that may lack a proof."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from mgpu_rt._selftest import bundle, right
from mgpu_rt._selftest.machine import Machine, find
from mgpu_rt._selftest.result import Part
from tests.proofs.programs import groups
from tests.support.child import BUILD, environment

TWO = "gfx90a,gfx90a"  # some programs need two devices
PLAYER = BUILD / "random_driver" / "player"


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
        if not names or group.check in names
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
