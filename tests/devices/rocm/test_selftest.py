"""Runs `mgpu-rt selftest` on a release of HIP that is newer than Debian 12's release."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from mgpu_rt._selftest import bundle, machine, right
from mgpu_rt._selftest.result import Part
from tests.devices.rocm import surroundings
from tests.devices.rocm.surroundings import Surroundings
from tests.support.child import environment

SEQUENCES = ("calm-01", "calm-10")


@pytest.mark.nightly
@pytest.mark.parametrize("chip", ["gfx90a", "gfx942"])
def test_programs_and_sequences_are_right(
    chip: str, here: Surroundings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some sequences of the selftest destroy an event's stream. An earlier version of the library
    then queried the event. HIP 7.2.4's hipEventQuery reads the destroyed stream."""

    class Popen(surroundings.Popen):
        pass

    Popen.here = here
    monkeypatch.setattr(subprocess, "Popen", Popen)
    base = here.environment({**environment("softgpu"), "MGPU_RT_SOFTGPU": chip})
    read = bundle.read()
    found = machine.find("softgpu", read, base=base)
    assert found.reports  # HIP 5.2.3, Debian 12's, reports no calls
    assert found.chip == chip and found.hip.startswith(here.release.hip.rpartition(".")[0])
    read.lay_out(chip, tmp_path)
    checks = right.checks(read, found, tmp_path)
    sample = [
        check for check in checks if check.part in ("programs", "proofs") or check.name in SEQUENCES
    ]
    proofs = sum(check.part == "proofs" for check in sample)
    parts: list[Part] = []
    right.perform(sample, parts, lambda text: None, "")
    assert [(part.name, part.compared, part.wrong) for part in parts] == [
        ("programs", 3, []),
        ("proofs", proofs, []),
        ("sequences", len(SEQUENCES), []),
    ]
