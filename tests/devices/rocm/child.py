"""Replaces tests.support.child on another release of HIP.

Messages of DTIF's loader do not count as the program's output. Some tests use the stub only to
count calls of HIP. These tests run on the release, where the library counts the calls.
"""

from __future__ import annotations

import os
import sys

from tests.devices.rocm.surroundings import without_chatter
from tests.support import child

#: The exit status of a test that calls the stub's own functions.
STUB_ONLY = 77

_said = child.Mgpu.stderr


def _stderr(mgpu: child.Mgpu) -> str:
    return without_chatter(_said(mgpu))


def _count(mgpu: child.Mgpu, function: str) -> int:
    return mgpu.stats()["hip"].get(function, {"calls": 0})["calls"]


class _NoStub:
    """HIP instead of the stub. If a test accesses a function that only the stub has, the test is
    skipped."""

    def __init__(self, hip: object) -> None:
        self.hip = hip

    def __getattr__(self, name: str) -> object:
        if name.startswith("hipstub_"):
            os._exit(STUB_ONLY)
        return getattr(self.hip, name)


class _Mgpu(child.Mgpu):
    stderr = _stderr

    def __init__(self) -> None:
        super().__init__()
        self.stub = _NoStub(self.stub)
        if os.environ.get("MGPU_RT_STATS"):
            self.count = lambda function: _count(self, function)  # type: ignore[method-assign]


if __name__ == "__main__":
    child.Mgpu = _Mgpu  # type: ignore[misc]
    sys.exit(child.main())
