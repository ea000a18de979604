"""The library passes its tests if it is built with the assertions about the tables of
shared/types.h."""

from __future__ import annotations

import pytest

from tests.support.child import ROOT
from tests.support.variants import NAME, PLAIN, checkout, run_tests

pytestmark = pytest.mark.check

FLAGS = (*PLAIN, "-DMGPU_RT_CHECK")
SUITE = ("memory", "freed", "forkjoin", "events", "modules", "copies", "reset")


def test_the_tables_hold_in_place() -> None:
    library = checkout(FLAGS) / "build" / "lib" / NAME
    files = [next((ROOT / "tests" / "runtime").rglob(f"test_{name}.py")) for name in SUITE]
    done = run_tests(library, *map(str, files), "-k", "not softgpu and not cuda")
    assert done.returncode == 0, done.stdout
