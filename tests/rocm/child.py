"""tests.child on another release: what DTIF's loader says is not the program's output."""

from __future__ import annotations

from tests import child
from tests.rocm.surroundings import without_chatter

_said = child.Mgpu.stderr


def _stderr(mgpu: child.Mgpu) -> str:
    return without_chatter(_said(mgpu))


if __name__ == "__main__":
    child.Mgpu.stderr = _stderr  # type: ignore[method-assign]
    child.main()
