"""Starts Python for this package so that no file in the current folder replaces a module."""

from __future__ import annotations

import os
import sys

#: The folder that contains the package; links in the folder's path are not resolved.
_HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

#: Removes the current folder from sys.path. Python 3.13 imports modules before it runs the code of
#: -c, so _BEGIN would be too late. Python 3.10 lacks the option -P, but imports no module before
#: the code of -c runs.
_FLAGS = ["-P"] if sys.version_info >= (3, 11) else []

#: Precedes the code of each child process, so that the child imports the caller's copy of mgpu_rt.
_BEGIN = """
import sys
if sys.path[:1] == [""]:
    del sys.path[0]
sys.path.insert(0, sys.argv.pop(1))
import mgpu_rt
del sys.path[0]
"""


def text_command(text: str, *arguments: str) -> list[str]:
    """Returns the command that runs Python code with arguments, which the code finds in
    sys.argv[1:]."""
    return [sys.executable, *_FLAGS, "-c", _BEGIN + text, _HOME, *arguments]
