"""Loads classes that a user names, for the manager and for runtimes, and describes errors in these
classes."""

from __future__ import annotations

import importlib
import operator
import os
import sys
import traceback
from collections.abc import Iterable
from typing import Any


class NotFound(ImportError):
    """Raised if a name denotes no class. The exception's message addresses the user who gave the
    name."""


def parts(name: str) -> tuple[str, str]:
    """Returns the module and the class that "package.module:Class" names. Raises NotFound."""
    module, _, attribute = name.partition(":")
    if not (module and attribute):
        raise NotFound("it is not of the form package.module:Class, such as mine:Trace of mine.py")
    return module, attribute


def load_class(name: str, paths: Iterable[str] = ()) -> Any:
    """Returns the class that "package.module:Class" names. Python searches `paths` last, so no file
    in them replaces a module of Python or an installed package.

    Raises NotFound, or an exception that the import of the module raises.
    """
    module, attribute = parts(name)
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


def describe(error: BaseException) -> str:
    """Describes an exception in one line, with the file and the line in which it was raised."""
    if isinstance(error, NotFound):
        return str(error)
    text = traceback.format_exception_only(error)[-1].strip()
    frames = traceback.extract_tb(error.__traceback__)
    return f"{text} ({frames[-1].filename}, line {frames[-1].lineno})" if frames else text
