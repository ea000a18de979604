"""Limits the work of reading one file.

Tables of a damaged file may name the same bytes again and again. A reader counts the bytes that it
reads, and stops when the count exceeds a multiple of the file's size.
"""

from __future__ import annotations

import io

_FOR_EACH_BYTE = 64
_FOR_ANY_FILE = 1 << 20
_READ = 256  # the cost of a read beyond its bytes


class BudgetExceeded(Exception):
    """Raised if the file's tables name the same bytes too often."""


class Budget:
    """The budget of one file: the number of bytes that readers may still read."""

    def __init__(self, size: int) -> None:
        self._left = _FOR_ANY_FILE + _FOR_EACH_BYTE * size

    def spend(self, count: int) -> None:
        """Counts bytes that a reader reads. Raises BudgetExceeded."""
        self._left -= count
        if self._left < 0:
            raise BudgetExceeded


class Counted(io.BytesIO):
    """A file in memory; a budget counts the bytes that are read from the file."""

    def __init__(self, data: bytes, budget: Budget) -> None:
        super().__init__(data)
        self._budget = budget

    def read(self, size: int | None = -1, /) -> bytes:
        """As io.BytesIO's. Raises BudgetExceeded."""
        found = super().read(size)
        self._budget.spend(_READ + len(found))
        return found
