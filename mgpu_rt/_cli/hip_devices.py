"""Asks a HIP library for its release and its devices, by mgpu-rt-probe: a broken driver may hang or
crash."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mgpu_rt import _hip_search
from mgpu_rt._cli import child, preload
from mgpu_rt._cli.errors import CommandError

TIMEOUT = 60.0  # seconds; HIP's first call takes up to 2 on a machine with 8 GPUs


def of(device: str, base: Mapping[str, str]) -> dict[str, Any]:
    """Returns the facts of the HIP of `mgpu-rt run --device DEVICE`. Raises CommandError if the
    device is missing, or if HIP names none."""
    environment = preload.device_environment(device, base)
    hip = environment.get("MGPU_RT_HIP") or next(iter(_hip_search.find(base)))
    found = ask(hip, environment)
    if not found["devices"]:
        why = f"cannot be asked: {found['error']}" if found["error"] else "finds no GPU"
        raise CommandError(f"{hip} {why}; `mgpu-rt doctor --device {device}` says more")
    return found


def ask(hip: str, environment: Mapping[str, str]) -> dict[str, Any]:
    """Returns the facts that `mgpu-rt-probe --json HIP` prints in the environment of a program:
    version, driver, devices, pages. `error` says why there are no devices; "": HIP has none."""
    unwanted = ("LD_PRELOAD", "MGPU_RT_STATS", "MGPU_RT_TRACE")
    clean = {name: value for name, value in environment.items() if name not in unwanted}
    known = {"version": 0, "devices": []}
    try:
        command = [_hip_search.probe(), "--json", hip]
        ended = child.run(command, clean, limit=TIMEOUT, **child.PIPES)
        return {**known, **json.loads(ended.stdout.splitlines()[-1])}
    except CommandError as error:
        return {**known, "error": error.message}
    except (ValueError, IndexError):
        return {**known, "error": (ended.stderr.strip().splitlines() or [ended.how])[-1]}
