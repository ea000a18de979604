"""The findings of a selftest, which are also the file's content.

A file does not reveal who ran the selftest or where: the file names no host, user or path.
"""

from __future__ import annotations

import contextlib
import getpass
import re
import socket
from dataclasses import asdict, dataclass, field
from typing import Any

FORMAT = 6

#: The value of `side` for a fault of stock's behaviour, which is no fault of the library.
STOCK = "stock"

#: The verdicts. The verdict is yes only if every side was compared, completely and without a
#: difference.
YES, NO, NOT_KNOWN = "yes", "no", "not known"


@dataclass
class Wrong:
    """A fault that a check found, and the command that repeats the check."""

    name: str
    side: str
    says: list[str]
    repeat: str


@dataclass
class Part:
    """Counts the checks of one kind: all checks, and the checks that were made."""

    name: str
    total: int
    checked: int = 0
    compared: int = 0  # checks that compared every side with stock's behaviour
    wrong: list[Wrong] = field(default_factory=list)


@dataclass
class Timing:
    """The median time per iteration in microseconds. The range from `low` to `high` contains the
    middle 80 % of the samples."""

    program: str
    llvm: int
    side: str
    us: float
    low: float
    high: float
    samples: int


@dataclass
class Result:
    """All findings. `ended` is the reason why the run ended early; empty if all checks were
    made."""

    mgpu_rt: str
    made: str  # the day
    device: dict[str, Any] = field(default_factory=dict)
    processor: str = ""
    seconds: float = 0
    ended: str = ""
    right: list[Part] = field(default_factory=list)
    fast: list[Timing] = field(default_factory=list)
    untimed: list[str] = field(default_factory=list)  # programs without a time, and why

    @property
    def verdict(self) -> str:
        """Returns YES, NO or NOT_KNOWN."""
        sides = {wrong.side for part in self.right for wrong in part.wrong}
        if sides - {STOCK}:
            return NO
        complete = all(part.compared == part.total > 0 for part in self.right)
        return YES if self.right and complete and STOCK not in sides else NOT_KNOWN

    @property
    def wrong(self) -> list[Wrong]:
        """Returns the faults of stock's behaviour and of the library."""
        return [wrong for part in self.right for wrong in part.wrong]

    def document(self) -> dict[str, Any]:
        """Returns the result as JSON for the file."""
        return {"format": FORMAT, "verdict": self.verdict, **_without_names(asdict(self))}


_PATH = re.compile(r"(?<![\w.])~?/[^\s'\":;,()]*")


def _names() -> list[str]:
    """Returns names of this machine and user, which the file must not contain."""
    names = [socket.gethostname(), socket.gethostname().partition(".")[0]]
    with contextlib.suppress(OSError, KeyError, ImportError):
        names.append(getpass.getuser())
    return [name for name in names if len(name) > 1]


def _without_names(value: Any, names: list[str] | None = None) -> Any:
    """Returns the value; hides paths, user names and machine names in the value's texts."""
    names = _names() if names is None else names
    if isinstance(value, str):
        text = _PATH.sub("(path)", value)
        for name in names:
            text = re.sub(rf"\b{re.escape(name)}\b", "(name)", text)
        return text
    if isinstance(value, list):
        return [_without_names(one, names) for one in value]
    if isinstance(value, dict):
        return {name: _without_names(one, names) for name, one in value.items()}
    return value
