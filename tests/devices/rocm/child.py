"""Replaces tests.support.child on another release of HIP: messages of DTIF's loader do not count as
the program's output."""

from __future__ import annotations

import sys

from tests.devices.rocm.surroundings import without_chatter
from tests.support import child


class _Mgpu(child.Mgpu):
    def stderr(self) -> str:
        return without_chatter(super().stderr())


if __name__ == "__main__":
    child.Mgpu = _Mgpu  # type: ignore[misc]
    sys.exit(child.main())
