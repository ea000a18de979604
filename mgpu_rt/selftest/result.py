"""The findings of a selftest, and the form of the file that holds them.

`schema` is that form. A file says nothing of who ran it or where: no host, user or path.
"""

from __future__ import annotations

import contextlib
import getpass
import re
import socket
from dataclasses import asdict, dataclass, field
from typing import Any

FORMAT = 1


#: The side of a failure that stock's behaviour has too.
HIP = "HIP"


@dataclass
class Wrong:
    """A difference from stock's behaviour, or a failure of HIP itself, and the command that shows
    it again."""

    name: str
    side: str
    says: list[str]
    repeat: str


@dataclass
class Part:
    """Checks of a kind: how many there are, how many were made, and those that went wrong."""

    name: str
    total: int
    checked: int = 0
    wrong: list[Wrong] = field(default_factory=list)

    @property
    def differ(self) -> int:
        """How often stock's behaviour or the library is wrong."""
        return sum(one.side != HIP for one in self.wrong)


@dataclass
class Timing:
    """Microseconds an iteration: the median, and the middle 80 %."""

    program: str
    llvm: int
    side: str
    us: float
    low: float
    high: float
    samples: int


@dataclass
class Result:
    """All of it. `ended` is empty where everything was done, else it says why not."""

    mgpu_rt: str
    made: str  # the day
    device: dict[str, Any] = field(default_factory=dict)
    processor: str = ""
    seconds: float = 0
    ended: str = ""
    right: list[Part] = field(default_factory=list)
    fast: list[Timing] = field(default_factory=list)
    questions: dict[str, float] = field(default_factory=dict)
    advice: str = ""

    @property
    def wrong(self) -> list[Wrong]:
        """A fault of stock's behaviour or of the library."""
        return [wrong for part in self.right for wrong in part.wrong if wrong.side != HIP]

    @property
    def failed(self) -> list[Wrong]:
        """A failure of HIP itself, which says nothing of the library."""
        return [wrong for part in self.right for wrong in part.wrong if wrong.side == HIP]

    def document(self) -> dict[str, Any]:
        """For the file."""
        return {"format": FORMAT, **_without_names(asdict(self))}


#: A type, or a list with the schema of each element, or a dictionary with those of its names. In a
#: dictionary of one name "*" that name stands for all.
schema: dict[str, Any] = {
    "format": int,
    "mgpu_rt": str,
    "made": str,
    "device": {
        "kind": str,
        "name": str,
        "target": str,
        "devices": int,
        "hip": str,
        "driver": str,
        "memory": int,
    },
    "processor": str,
    "seconds": float,
    "ended": str,
    "right": [
        {
            "name": str,
            "total": int,
            "checked": int,
            "wrong": [{"name": str, "side": str, "says": [str], "repeat": str}],
        }
    ],
    "fast": [
        {
            "program": str,
            "llvm": int,
            "side": str,
            "us": float,
            "low": float,
            "high": float,
            "samples": int,
        }
    ],
    "questions": {"*": float},
    "advice": str,
}


def faults(value: Any, form: Any = None, path: str = "") -> list[str]:
    """The places where a document, which may come from anywhere, is not as the schema has it."""
    form = schema if form is None else form
    if isinstance(form, list):
        if not isinstance(value, list):
            return [f"{path}: not a list"]
        return [f for i, one in enumerate(value) for f in faults(one, form[0], f"{path}[{i}]")]
    if isinstance(form, dict):
        if not isinstance(value, dict):
            return [f"{path}: not an object"]
        if "*" in form:
            return [f for n, one in value.items() for f in faults(one, form["*"], f"{path}.{n}")]
        odd = [f"{path}.{name}: missing or unknown" for name in sorted(form.keys() ^ value.keys())]
        shared = form.keys() & value.keys()
        return odd + [f for n in sorted(shared) for f in faults(value[n], form[n], f"{path}.{n}")]
    kinds = (int, float) if form is float else (form,)
    right = isinstance(value, kinds) and not isinstance(value, bool)
    return [] if right else [f"{path}: not {form.__name__}"]


_PATH = re.compile(r"(?<![\w.])~?/[^\s'\":;,()]*")


def _names() -> list[str]:
    """Names of this machine and user, which the file must not hold."""
    names = [socket.gethostname(), socket.gethostname().partition(".")[0]]
    with contextlib.suppress(OSError, KeyError, ImportError):
        names.append(getpass.getuser())
    return [name for name in names if len(name) > 1]


def _without_names(value: Any, names: list[str] | None = None) -> Any:
    """The value, in whose texts paths and the names of machine and user are hidden."""
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
