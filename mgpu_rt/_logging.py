"""Passes messages of the C library to Python's logging."""

from __future__ import annotations

import atexit
import ctypes
import logging
import threading
from typing import Any

#: The maximum time for which a call of the library waits until Python accepts the call's message.
PATIENCE_MS = 5000
_SIZE = 2048

_wanted = threading.Event()


def use(native: Any, ffi: Any, on: bool) -> None:
    """Starts or ends the logging of the library's messages. A process needs one thread for logging,
    and a forked child needs its own thread."""
    if not on:
        _wanted.clear()
        return
    _wanted.set()
    holds_gil = ctypes.cast(ctypes.pythonapi.PyGILState_Check, ctypes.c_void_p).value
    if native.mgpu_rt_lines_begin(ffi.cast("int (*)(void)", holds_gil), PATIENCE_MS):
        thread = threading.Thread(target=_serve, args=(native, ffi), daemon=True, name="mgpu_rt")
        thread.start()
        atexit.register(native.mgpu_rt_lines_end)  # logging ends after that: it was imported before


def _serve(native: Any, ffi: Any) -> None:
    line = ffi.new("char[]", _SIZE)
    logged = True
    try:
        while level := native.mgpu_rt_lines_next(logged, line, _SIZE):
            logged = _log(level, ffi.string(line).decode(errors="replace").removesuffix("\n"))
    finally:
        native.mgpu_rt_lines_end()


def _log(level: int, line: str) -> bool:
    """Returns whether a handler received the line. Looks for handlers at each message, because a
    program may configure its logging at any time."""
    logger = logging.getLogger("mgpu_rt")
    if not _wanted.is_set() or not logger.hasHandlers():
        return False
    try:
        logger.log(level, "%s", line)
    except Exception:  # an exception in a filter of the program
        return False
    return True
