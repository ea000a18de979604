"""Runs processes with a time limit: if a GPU hangs, the selftest abandons the process that waits
for the GPU."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

#: The number of seconds that run() waits for a killed process to end. A process that hangs in the
#: kernel may remain.
GRACE = 5.0

HUNG = "it did not end within its time limit: the GPU or its driver hangs, see dmesg"


@dataclass(frozen=True)
class Ended:
    """How a process ended. `status` is None if the process was killed at its time limit."""

    status: int | None
    out: str
    err: str

    @property
    def how(self) -> str:
        """Returns a description of how the process ended; empty if the process succeeded."""
        if self.status is None:
            return HUNG
        if self.status < 0:
            return f"it was ended by signal {-self.status}"
        return f"exit status {self.status}" if self.status else ""


def run(
    command: Sequence[str], env: Mapping[str, str], seconds: float, *, merged: bool = False
) -> Ended:
    """Runs a process to its end, or kills it. With `merged`, `out` also contains the process's
    stderr."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        command,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=pipe,
        stderr=subprocess.STDOUT if merged else pipe,
        encoding="utf-8",
        errors="replace",
    )
    with killed(process):
        try:
            out, err = process.communicate(timeout=seconds)
            return Ended(process.returncode, out, err or "")
        except subprocess.TimeoutExpired:
            process.kill()
            try:
                out, err = process.communicate(timeout=GRACE)
            except subprocess.TimeoutExpired:
                out = err = ""
            return Ended(None, out, err or "")


@contextlib.contextmanager
def killed(process: subprocess.Popen[str]) -> Iterator[None]:
    """Leaves no running process behind, even after Ctrl-C."""
    try:
        yield
    finally:
        if process.poll() is None:
            process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GRACE)
