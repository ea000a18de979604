"""The findings of a selftest, and the form of the file that contains them.

`schema` defines the form. A file does not reveal who ran the selftest or where: the file names no
host, user or path.
"""

from __future__ import annotations

import contextlib
import getpass
import re
import socket
from dataclasses import asdict, dataclass, field
from typing import Any

#: Format 1 had no `verdict`, `compared` and `untimed`.
FORMAT = 2

#: The value of `side` for a failure that also occurs with stock's behaviour.
HIP = "HIP"
STOCK = "stock"
#: The value of `side` for a kernel whose results differ between the emulated device and the GPU.
EMULATOR = "emulated device"
#: The values of `side` that mark faults outside the library.
OTHERS = (HIP, EMULATOR)

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

    @property
    def differ(self) -> int:
        """Returns how often stock's behaviour or the library gave a wrong result."""
        return sum(one.side not in OTHERS for one in self.wrong)


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
    questions: dict[str, float] = field(default_factory=dict)
    advice: str = ""
    untimed: list[str] = field(default_factory=list)  # programs without a time, and why

    @property
    def verdict(self) -> str:
        """Returns YES, NO or NOT_KNOWN."""
        return verdict(asdict(self)["right"])

    @property
    def wrong(self) -> list[Wrong]:
        """Returns the faults of stock's behaviour and of the library."""
        return [wrong for part in self.right for wrong in part.wrong if wrong.side not in OTHERS]

    @property
    def failed(self) -> list[Wrong]:
        """Returns the failures of HIP itself and of the emulated device, which are no faults of the
        library."""
        return [wrong for part in self.right for wrong in part.wrong if wrong.side in OTHERS]

    def document(self) -> dict[str, Any]:
        """Returns the result as JSON for the file."""
        return {"format": FORMAT, "verdict": self.verdict, **_without_names(asdict(self))}


def verdict(parts: list[dict[str, Any]]) -> str:
    """Returns the verdict that follows from the checks in `parts`."""
    sides = {wrong["side"] for part in parts for wrong in part["wrong"]}
    if sides - {STOCK, *OTHERS}:
        return NO
    complete = all(part["compared"] == part["total"] > 0 for part in parts)
    return YES if parts and complete and STOCK not in sides else NOT_KNOWN


#: A schema is a type, a list with the schema of its elements, or a dictionary with a schema for
#: each key. A dictionary whose only key is "*" has one schema for all keys.
schema: dict[str, Any] = {
    "format": int,
    "verdict": str,
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
            "compared": int,
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
    "untimed": [str],
}


def faults(document: Any) -> list[str]:
    """Returns the places where a document, which may come from any source, violates the schema. The
    verdict and the counts must follow from the document's other parts."""
    found = _unlike(document, schema, "")
    if found:
        return found
    if document["format"] != FORMAT:
        return [f".format: not {FORMAT}"]
    for i, part in enumerate(document["right"]):
        if not 0 <= part["compared"] <= part["checked"] <= part["total"]:
            found.append(f".right[{i}].compared: more than was checked, or there is")
    if document["verdict"] != verdict(document["right"]):
        found.append(f".verdict: not {verdict(document['right'])}, which follows from the checks")
    return found


def upgraded(document: Any) -> Any:
    """Converts a document of format 1 to this format; returns any other document unchanged. Format
    1 has no count of compared checks. In a converted document, a check with a fault or a failure of
    HIP counts as not compared."""
    if not isinstance(document, dict) or document.get("format") != 1:
        return document
    try:
        parts = [
            {**part, "compared": part["checked"] - len({one["name"] for one in part["wrong"]})}
            for part in document["right"]
        ]
        made = {"format": FORMAT, "verdict": verdict(parts), "right": parts, "untimed": []}
        return {**document, **made}
    except (KeyError, TypeError):
        return document


def _unlike(value: Any, form: Any, path: str) -> list[str]:
    if isinstance(form, list):
        if not isinstance(value, list):
            return [f"{path}: not a list"]
        return [f for i, one in enumerate(value) for f in _unlike(one, form[0], f"{path}[{i}]")]
    if isinstance(form, dict):
        if not isinstance(value, dict):
            return [f"{path}: not an object"]
        if "*" in form:
            return [f for n, one in value.items() for f in _unlike(one, form["*"], f"{path}.{n}")]
        odd = [f"{path}.{name}: missing or unknown" for name in sorted(form.keys() ^ value.keys())]
        shared = form.keys() & value.keys()
        return odd + [f for n in sorted(shared) for f in _unlike(value[n], form[n], f"{path}.{n}")]
    kinds = (int, float) if form is float else (form,)
    right = isinstance(value, kinds) and not isinstance(value, bool)
    return [] if right else [f"{path}: not {form.__name__}"]


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
