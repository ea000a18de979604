"""The guards of the runtime, each with the test that must fail without it (test_guards.py).

A table for each layer of csrc/runtime, by the file that the guard is in.
"""

from __future__ import annotations

from tests.runtime.guards.guard import Guard
from tests.runtime.guards.hip import HIP
from tests.runtime.guards.lifecycle import LIFECYCLE
from tests.runtime.guards.recording import RECORDING

__all__ = ["GUARDS", "Guard"]

GUARDS: list[Guard] = [*HIP, *RECORDING, *LIFECYCLE]
