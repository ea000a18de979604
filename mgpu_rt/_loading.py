"""Loads classes that a user names, for the manager and for runtimes, and describes errors in these
classes."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from types import TracebackType
from typing import Any


class NotFound(ImportError):
    """Raised if a name denotes no class. The exception's message addresses the user who gave the
    name."""


def load_class(name: str, paths: Iterable[str] = ()) -> Any:
    """Returns the class that "package.module:Class" names.

    The loader searches `paths` first, so the class's module may have the name of a standard module.
    The module's own imports search `paths` last, because `paths` are appended to sys.path. Raises
    NotFound, or an exception that the import of the module raises.
    """
    module, colon, attribute = name.partition(":")
    if not (module and colon and attribute):
        raise NotFound("it is not of the form package.module:Class, such as mine:Trace of mine.py")
    found = _imported(module, list(dict.fromkeys(map(os.path.abspath, filter(None, paths)))))
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise NotFound(f"'{module}' has no class '{attribute}'")
        found = getattr(found, part)
    return found


def _imported(module: str, searched: list[str]) -> Any:
    """Returns the module. Raises NotFound if the named module is missing. If an import in the named
    module fails, raises that import's exception."""
    top = module.partition(".")[0]
    if top not in sys.modules:  # this package's own modules need nothing of the user's
        sys.path += [path for path in searched if path not in sys.path]
        _import_from(searched, top)
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        where = " or ".join(filter(None, [", ".join(searched), "the packages of this Python"]))
        raise NotFound(f"there is no module '{error.name}' in {where}") from None


def _import_from(paths: list[str], name: str) -> None:
    """Imports the module or package `name` from `paths`; does nothing if no path contains
    `name`."""
    spec = PathFinder.find_spec(name, paths)
    if spec is None or spec.loader is None or spec.origin is None:  # a folder, or nothing
        return
    module = sys.modules[name] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise


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
