"""A budget for the work that one file costs.

Tables of a damaged file may name the same bytes again and again. Whoever reads counts the bytes
that are looked at, so that reading costs no more than so much for each byte that is there.
"""

from __future__ import annotations

import io

_FOR_EACH_BYTE = 64
_FOR_ANY_FILE = 1 << 20
_READ = 256  # what a read costs beside its bytes


class BudgetExceeded(Exception):
    """The file's parts lie over each other too often."""


class Budget:
    """What may still be spent on a file."""

    def __init__(self, size: int) -> None:
        self._left = _FOR_ANY_FILE + _FOR_EACH_BYTE * size

    def spend(self, count: int) -> None:
        """So many bytes are looked at. Raises BudgetExceeded."""
        self._left -= count
        if self._left < 0:
            raise BudgetExceeded


class Counted(io.BytesIO):
    """A file in memory whose reads are counted."""

    def __init__(self, data: bytes, budget: Budget) -> None:
        super().__init__(data)
        self._budget = budget

    def read(self, size: int | None = -1, /) -> bytes:
        """As io.BytesIO's. Raises BudgetExceeded."""
        found = super().read(size)
        self._budget.spend(_READ + len(found))
        return found
