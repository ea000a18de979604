"""The selftest's checks over the emulated device, for a library that may lack a proof."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from pathlib import Path

from mgpu_rt._selftest import bundle, right
from mgpu_rt._selftest.machine import Machine, find
from mgpu_rt._selftest.result import Part
from tests.proofs.programs import groups
from tests.support.child import BUILD, environment, library

TWO = "gfx90a,gfx90a"  # some programs need two devices
PLAYER = BUILD / "random_driver" / "player"


def checks_of(tested: Path, folder: Path, names: Sequence[str] = ()) -> list[right.Check]:
    """Returns the checks of the library `tested` with the given names: programs of
    tests/proofs/programs, and the bundle's checks. If `names` is empty, returns the check of each
    group of programs."""
    read, found = _found()
    read.lay_out(found.chip, folder)
    found = dataclasses.replace(found, environment=_with(tested, found.environment))
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


@functools.cache
def _found() -> tuple[bundle.Bundle, Machine]:
    """Returns the bundle, and the two emulated devices as any library finds them."""
    read = bundle.read()
    base = environment("softgpu", MGPU_RT_SOFTGPU=TWO)
    return read, dataclasses.replace(find("softgpu", read, library(), base=base), player=PLAYER)


def _with(tested: Path, env: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment in which programs load the library `tested`: the search path begins
    with the library's folder."""
    _, *others = env["LD_LIBRARY_PATH"].split(":")
    return {**env, "LD_LIBRARY_PATH": ":".join([str(tested.parent), *others])}


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
