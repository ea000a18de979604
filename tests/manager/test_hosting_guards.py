"""Takes out one rule of hosting at a time, and sees that a test notices."""

from __future__ import annotations

import contextlib
import os
import signal
from dataclasses import dataclass

import pytest

from tests.support.hosting import managers
from tests.support.variants import Change, build, run_tests

RUNTIME = "csrc/runtime/"
HOSTING, SANDBOXES, MANAGER, POLICY = (
    "test_hosting",
    "test_sandboxes",
    "test_manager",
    "test_policy",
)


@dataclass(frozen=True)
class Rule:
    """A change, and the test that must then fail."""

    change: Change
    module: str
    test: str


def rule(file: str, old: str, new: str, module: str, test: str) -> Rule:
    return Rule(Change(file, old, new), module, test)


RULES = [
    rule(
        "mgpu_rt/manager/manager.py",
        "    manage(channel, Shipped(channel))",
        "    raise SystemExit(1)",
        MANAGER,
        "test_a_failed_policy_is_replaced",
    ),
    rule(
        "mgpu_rt/manager/manager.py",
        "        site.addsitedir(site.getusersitepackages())",
        "        pass",
        HOSTING,
        "test_cffi_may_be_among_the_users_own_packages",
    ),
]


@pytest.mark.parametrize("number", range(len(RULES)), ids=lambda i: f"{i}-{RULES[i].test}")
def test_a_test_notices_the_missing_rule(number: int) -> None:
    missing = RULES[number]
    library = build(f"rule-{number}", missing.change)
    try:
        done = run_tests(library, f"tests/manager/{missing.module}.py::{missing.test}")
    finally:
        for process in managers(library.parent.parent.parent):
            with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
                os.kill(process, signal.SIGKILL)
    assert done.returncode == 1, done.stdout
    assert "1 failed" in done.stdout
