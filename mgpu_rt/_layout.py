"""Locates the compiled files: in mgpu_rt/ itself, or in build/ of a checkout."""

from __future__ import annotations

import re
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
CHECKOUT = PACKAGE.parent

LIBRARY = "libmlir_rocm_runtime.so"

INSTALLED = (PACKAGE / "lib" / LIBRARY).exists()

#: The folder that contains lib/ and include/, as /usr/local does.
PREFIX = PACKAGE if INSTALLED else CHECKOUT / "build"

#: The folder that contains softgpu/ and cuhip/, which programs reach only through `mgpu-rt run`.
DEVICES = PREFIX / "lib" if INSTALLED else PREFIX

#: The folders that contain the tables abi.def and options.def, and the header mgpu_rt.h.
TABLES = (
    *(PACKAGE, PACKAGE / "include"),
    *(CHECKOUT / "csrc" / folder for folder in ("", "include", "runtime/process")),
)


def how_to_get(what: str) -> str:
    """Returns advice on how to install or build the missing part that `what` names."""
    if INSTALLED:
        return f"this installation came without {what}: install mgpu_rt from a wheel, or build it"
    return "run `make` to build it"


def table(name: str) -> str:
    """Returns the text of a file that C and Python share."""
    found = next(path for folder in TABLES if (path := folder / name).exists())
    return found.read_text(encoding="utf-8")


def rows(name: str, row: str) -> list[re.Match[str]]:
    """Returns the rows of a table that C and Python share, each a line that the pattern `row`
    matches. Raises ValueError for a row that it does not match."""
    text = table(name)
    found = list(re.finditer(rf"^{row}$", text, re.MULTILINE))
    expected = len(re.findall(r"^\w+\(", text, re.MULTILINE))
    if len(found) != expected:
        raise ValueError(f"{name} has {expected} lines, but only {len(found)} can be parsed")
    return found
