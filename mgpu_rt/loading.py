"""Loads classes that a user names, for the manager and for runtimes, and describes their errors."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable
from types import TracebackType
from typing import Any


def load_class(name: str, paths: Iterable[str] = (), *, first: bool = False) -> Any:
    """The class that "package.module:Class" names.

    `paths` join sys.path at its end, or with `first` at its beginning: a file of the user may have
    the name of a standard module. Raises ValueError if the name has another form, and the errors of
    the import.
    """
    module, colon, attribute = name.partition(":")
    if not (module and colon and attribute):
        raise ValueError("it is not of the form package.module:Class")
    fresh = [path for path in map(os.path.abspath, filter(None, paths)) if path not in sys.path]
    sys.path[0 if first else len(sys.path) : 0 if first else len(sys.path)] = fresh
    found: Any = importlib.import_module(module)
    for part in attribute.split("."):
        found = getattr(found, part)
    return found


def location(traceback: TracebackType | None) -> str:
    """The innermost line of an exception."""
    while traceback and traceback.tb_next:
        traceback = traceback.tb_next
    if not traceback:
        return ""
    return f" ({traceback.tb_frame.f_code.co_filename}, line {traceback.tb_lineno})"


def describe(error: BaseException) -> str:
    """An exception in one line, with its place."""
    return f"{type(error).__name__}: {error}{location(error.__traceback__)}"
