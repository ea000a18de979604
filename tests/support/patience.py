"""How long a test waits: until something is so, however busy the machine, or until it hangs."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

#: Seconds after which what is waited for hangs. All of it takes seconds at most, so that no load
#: makes this fail. pytest's own limit (pyproject.toml) is longer. A test that has to hang without a
#: proof makes it short (variants.py).
HANG = int(os.environ.get("MGPU_RT_TEST_HANG", "600"))


def wait_until(condition: Callable[[], object]) -> bool:
    """Looks until the condition is true; False if that hangs."""
    end = time.monotonic() + HANG
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def wait_for_end(thread: threading.Thread) -> bool:
    """Joins the thread, and waits until the system has none of its number; False if that hangs.

    Python's join returns before the thread has run what C registered for its end.
    """
    thread.join(HANG)
    return wait_until(lambda: not Path(f"/proc/self/task/{thread.native_id}").exists())
