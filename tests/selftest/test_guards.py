"""The selftest notices, on the emulated device, a library that lacks a guard."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from mgpu_rt.selftest import bundle, machine, right
from mgpu_rt.selftest.result import Part
from tests.runtime.guards import GUARDS, Guard
from tests.support.child import environment
from tests.support.variants import build

#: Guards by the tests that they have, each of another kind.
TAKEN_OUT = (
    "02_one_name_in_two_modules_gives_two_functions",
    "02_another_name_at_the_same_address_gives_another_function",
    "a_copy_waits_for_earlier_work",
)
MINUTES = 5.0

_NAMED = {guard.name: guard for guard in GUARDS}


@pytest.mark.check
@pytest.mark.parametrize("guard", [_NAMED[name] for name in TAKEN_OUT], ids=TAKEN_OUT)
def test_selftest_notices_a_library_without_its_guard(guard: Guard, tmp_path: Path) -> None:
    library = build(f"selftest-{guard.name}", *guard.changes, flags=("-O0", "-w"))
    read = bundle.read()
    found = machine.find("softgpu", None, read, library, base=environment("softgpu"))
    read.lay_out(read.kernels(found.chip), tmp_path)
    until = time.monotonic() + 60 * MINUTES
    for check in right.checks(read, found, tmp_path):
        parts: list[Part] = []
        right.perform([check], parts, until, lambda text: None, "")
        if parts[0].wrong:
            assert all(wrong.side != "stock" for wrong in parts[0].wrong)
            return
    pytest.fail("nothing was found wrong")
