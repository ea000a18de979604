"""Takes out one guard at a time and sees that the tests of the traps notice.

Each mutant is the library with one line of its source changed. A mutant that passes its test would
mean that the test proves nothing.
"""

from __future__ import annotations

import importlib

import pytest

from tests.runtime.guards import GUARDS
from tests.support.child import environment, run_child
from tests.support.variants import build

FLAGS = ("-O0", "-w")
HANGS = "12"  # seconds: where a mutant hangs, its test fails then


@pytest.mark.parametrize("number", range(len(GUARDS)), ids=lambda i: GUARDS[i].name)
def test_a_test_notices_the_missing_guard(number: int) -> None:
    guard = GUARDS[number]
    library = build(f"mutant-{number}", *guard.changes, flags=FLAGS)
    module, _, name = guard.test.partition(":")
    test = getattr(importlib.import_module(module), name)
    exclusive = {"MGPU_RT_EXCLUSIVE": "on"} if guard.exclusive else {}
    variables = {"MGPU_RT_TEST_LIBRARY": str(library), "MGPU_RT_PYTHON": "off"}
    variables["MGPU_RT_TEST_HANG"] = HANGS
    env = environment(test.backend, **{**test.env, **exclusive, **variables})
    with pytest.raises(AssertionError, match="exit status"):
        run_child(module, name, env)
