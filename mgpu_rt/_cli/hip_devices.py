"""Asks a HIP library for its release and its devices, by mgpu-rt-probe: a broken driver may hang or
crash."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from typing import Any

from mgpu_rt import _hip_search

TIMEOUT = 60.0  # seconds; HIP's first call takes up to 2 on a machine with 8 GPUs


def ask(hip: str, environment: Mapping[str, str]) -> dict[str, Any]:
    """Returns the facts that `mgpu-rt-probe --json HIP` prints in the environment of a program:
    version, driver, devices, pages. `error` says why there are no devices; "": HIP has none."""
    unwanted = ("LD_PRELOAD", "MGPU_RT_STATS", "MGPU_RT_TRACE")
    child = {name: value for name, value in environment.items() if name not in unwanted}
    command = [_hip_search.probe(), "--json", hip]
    pipes = {"stdin": subprocess.DEVNULL, "capture_output": True}
    why = ""
    try:
        done = subprocess.run(command, env=child, timeout=TIMEOUT, **pipes)
        return {"version": 0, "devices": [], **json.loads(done.stdout.splitlines()[-1])}
    except OSError as error:
        why = f"no process could be started: {error.strerror}"
    except subprocess.TimeoutExpired:
        why = f"it did not answer in {TIMEOUT:.0f} s: see dmesg"
    except (ValueError, IndexError):
        said = done.stderr.decode(errors="replace").strip().splitlines()
        why = (said or [f"a process that asked it ended with {done.returncode}"])[-1]
    return {"version": 0, "devices": [], "error": why}
