"""A program run twice: with stock's behaviour, and with the cache."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from mgpu_rt.cli import executable, preload
from mgpu_rt.cli.problem import Problem
from mgpu_rt.cli.stats.files import Statistics, added, read

NAMES = ("stock's behaviour (MGPU_RT_CACHE=off)", "mgpu_rt")


def compare(command: Sequence[str], device: str) -> tuple[Statistics, Statistics]:
    """The statistics of both runs. Raises Problem."""
    try:
        reason = executable.obstacle(executable.find(command[0]))
    except Problem as problem:
        raise Problem(str(problem)) from None  # the status of a shell is for `run`
    if reason:
        raise Problem(f"'{command[0]}' cannot be given mgpu_rt: {reason}")
    environment = {
        name: value
        for name, value in preload.environment(preload.announced(device)).items()
        if name not in ("MGPU_RT_CACHE", "MGPU_RT_TRACE")
    }
    stock = _run(command, {**environment, "MGPU_RT_CACHE": "off"}, NAMES[0])
    return stock, _run(command, environment, NAMES[1])


def _run(command: Sequence[str], environment: Mapping[str, str], name: str) -> Statistics:
    """What the program prints goes to stderr: stdout is the comparison's. Its exit status says
    nothing, since MLIR's main functions return none; a signal does."""
    with tempfile.TemporaryDirectory() as folder:
        env = {**environment, "MGPU_RT_STATS": os.path.join(folder, "%p.json")}
        try:
            done = subprocess.run([*command], env=env, stdout=sys.stderr.fileno())
        except OSError as error:
            why = executable.why_not(executable.find(command[0]), error)
            raise Problem(f"'{command[0]}' cannot be executed: {why}") from None
        if done.returncode < 0:
            raise Problem(
                f"with {name} '{command[0]}' was ended by signal {-done.returncode}, so there is "
                "nothing to compare: `mgpu-rt doctor` says what is in the way"
            )
        files = sorted(Path(folder).glob("*.json"))
        if not files:
            raise Problem(
                f"'{command[0]}' called none of the library's functions: name a program that MLIR "
                "lowered for a GPU"
            )
        return added(read(file) for file in files)
