"""Limits for the waits of tests. A test waits for a condition on a machine under any load. A wait
of more than HANG seconds counts as a hang."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

#: Seconds after which a wait counts as hanging. A wait normally takes a few seconds at most, so no
#: load makes a wait fail. The limit of pytest itself (pyproject.toml) is longer than HANG. A
#: library without a proof may hang; the tests of that library shorten the limit (variants.py).
HANG = int(os.environ.get("MGPU_RT_TEST_HANG", "600"))


def wait_until(condition: Callable[[], object]) -> bool:
    """Waits until the condition is true; returns False if the condition stays false for HANG
    seconds."""
    end = time.monotonic() + HANG
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def wait_for_end(thread: threading.Thread) -> bool:
    """Joins the thread, and waits until the system no longer lists the thread; returns False if the
    thread does not end.

    Python's join returns before the thread has run the C functions that are registered for its end.
    """
    thread.join(HANG)
    return wait_until(lambda: not Path(f"/proc/self/task/{thread.native_id}").exists())


def run_process(
    command: Sequence[object] | str, env: Mapping[str, str] | None = None, **more: object
) -> subprocess.CompletedProcess[str]:
    """Runs a program to its end, and returns its outcome with the text that it wrote. Raises
    TimeoutExpired."""
    return subprocess.run(  # type: ignore[call-overload]
        command, env=env, capture_output=True, text=True, timeout=HANG, **more
    )
