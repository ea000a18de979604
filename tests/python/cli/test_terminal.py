"""Commands show progress and colours on a terminal only."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Sequence

import pytest

from tests.support.child import environment
from tests.support.patience import HANG


def on_terminal(code: Sequence[str], **env: str) -> str:
    """Runs Python code whose stderr is a terminal; returns what the terminal gets."""
    master, slave = pty.openpty()
    lines = "\n".join(["from mgpu_rt._cli import terminal", *code])
    child = subprocess.Popen(
        [sys.executable, "-c", lines], stderr=slave, env=environment("stub", **env)
    )
    os.close(slave)
    shown = b""
    try:
        while part := os.read(master, 1 << 16):
            shown += part
    except OSError:  # the terminal has no writer left
        pass
    assert child.wait(HANG) == 0
    os.close(master)
    return shown.decode().replace("\r\n", "\n")


MESSAGES = ["terminal.message('error: a\\n  at b')", "terminal.message('warning: c')"]


def test_the_levels_of_messages_have_colours() -> None:
    red, magenta, end = "\033[31m\033[1m", "\033[35m\033[1m", "\033[0m"
    shown = on_terminal(MESSAGES)
    assert shown == f"{red}error:{end} a\n  at b\n{magenta}warning:{end} c\n"
    assert on_terminal(MESSAGES, NO_COLOR="1") == "error: a\n  at b\nwarning: c\n"


STEPS = [
    "terminal.step('run 1 of 2')",
    "terminal._PATIENCE = 0",
    "import time",
    "with terminal.told_if_long('still runs'): time.sleep(1)",
    "terminal._PATIENCE = 600",
    "with terminal.told_if_long('never shown'): pass",
]


def test_steps_and_long_programs_are_shown() -> None:
    assert on_terminal(STEPS) == "mgpu-rt: run 1 of 2\nmgpu-rt: still runs\n"


@pytest.mark.parametrize("code", [MESSAGES, STEPS])
def test_a_pipe_gets_no_progress_and_no_colours(code: list[str]) -> None:
    lines = "\n".join(["from mgpu_rt._cli import terminal", *code])
    done = subprocess.run(
        [sys.executable, "-c", lines], stderr=subprocess.PIPE, text=True, check=True, timeout=HANG
    )
    expected = "error: a\n  at b\nwarning: c\n" if code is MESSAGES else ""
    assert done.stderr == expected
