"""Loads classes that a user names, for the manager and for runtimes, and describes errors in these
classes."""

from __future__ import annotations

import importlib
import operator
import os
import sys
from collections.abc import Iterable
from types import TracebackType
from typing import Any


class NotFound(ImportError):
    """Raised if a name denotes no class. The exception's message addresses the user who gave the
    name."""


def load_class(name: str, paths: Iterable[str] = ()) -> Any:
    """Returns the class that "package.module:Class" names. Python searches `paths` last, so no file
    in them replaces a module of Python or an installed package.

    Raises NotFound, or an exception that the import of the module raises.
    """
    module, colon, attribute = name.partition(":")
    if not (module and colon and attribute):
        raise NotFound("it is not of the form package.module:Class, such as mine:Trace of mine.py")
    searched = list(dict.fromkeys(map(os.path.abspath, filter(None, paths))))
    sys.path += [path for path in searched if path not in sys.path]
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # an import within the module
        where = " or ".join(filter(None, [", ".join(searched), "the packages of this Python"]))
        raise NotFound(f"there is no module '{error.name}' in {where}") from None
    try:
        return operator.attrgetter(attribute)(found)
    except AttributeError:
        file = getattr(found, "__file__", "built in")
        raise NotFound(f"'{module}' has no class '{attribute}' ({file})") from None


def location(traceback: TracebackType | None) -> str:
    """Returns, in brackets, the file and the line in which an exception was raised."""
    while traceback and traceback.tb_next:
        traceback = traceback.tb_next
    if not traceback:
        return ""
    return f" ({traceback.tb_frame.f_code.co_filename}, line {traceback.tb_lineno})"


def describe(error: BaseException) -> str:
    """Describes an exception in one line, with its place."""
    if isinstance(error, NotFound):
        return str(error)
    try:
        text = str(error)
    except Exception as own:
        text = f"its text raises {type(own).__name__}"
    return f"{type(error).__name__}: {text}{location(error.__traceback__)}"
