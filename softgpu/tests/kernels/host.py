"""A child process that runs AMD's HIP and receives one launch after another through a pipe."""

from __future__ import annotations

import os
import pickle
import select
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mgpu_rt._cli import softgpu
from softgpu.tests.kernels.program import Launch
from tests.support.patience import HANG

ROOT = Path(__file__).resolve().parents[3]


class DeviceFailed(AssertionError):
    """A launch ended the child process, or HIP refused the launch. The message contains the output
    of the child process."""


@dataclass(frozen=True)
class Request:
    image: Path
    kernel: str
    launch: Launch


@dataclass(frozen=True)
class Answer:
    arrays: list[np.ndarray | None]
    symbols: dict[str, np.ndarray]
    error: str = ""


class Host:
    """The child process of one target. The first run starts the process, and the next run after a
    fault starts a new process."""

    def __init__(self, chip: str, **variables: str) -> None:
        self.chip = chip
        self.variables = variables
        self.child: subprocess.Popen[bytes] | None = None
        self.said = tempfile.TemporaryFile()  # noqa: SIM115

    def run(self, image: Path, kernel: str, launch: Launch) -> Answer:
        """Runs a kernel. Raises DeviceFailed."""
        child = self._started()
        assert child.stdin and child.stdout
        pickle.dump(Request(image, kernel, launch), child.stdin)
        child.stdin.flush()
        ready, _, _ = select.select([child.stdout], [], [], HANG)
        if not ready:
            self.close()
            raise DeviceFailed(f"{kernel} did not end within {HANG} s\n{self._words()}")
        try:
            answer = pickle.load(child.stdout)
        except EOFError:
            status = child.wait(HANG)
            raise DeviceFailed(f"{kernel} ended the process: {status}\n{self._words()}") from None
        if answer.error:  # HIP 6 and later repeat it at every call
            said = self._words()
            self.close()
            raise DeviceFailed(f"{kernel}: {answer.error}\n{said}")
        return answer

    def start(
        self, command: list[str], base: Mapping[str, str]
    ) -> tuple[list[str], dict[str, str]]:
        """Returns the child's command and environment, which select the machine's own HIP."""
        return command, softgpu.environment(base)

    def close(self) -> None:
        if self.child is not None:
            self.child.kill()
            self.child.wait()
            self.child = None

    def _started(self) -> subprocess.Popen[bytes]:
        if self.child is None or self.child.poll() is not None:
            base = {**os.environ, "MGPU_RT_SOFTGPU": self.chip, **self.variables}
            self.said.seek(0)
            self.said.truncate()
            command, environment = self.start(
                [sys.executable, "-m", "softgpu.tests.kernels.hip"], base
            )
            self.child = subprocess.Popen(
                command,
                cwd=ROOT,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self.said,
            )
        return self.child

    def _words(self) -> str:
        self.said.seek(0)
        return self.said.read().decode(errors="replace")
