"""Asks a HIP library for its release and its devices, in a child process, since a broken driver may
hang or crash."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import NamedTuple

TIMEOUT = 60.0  # seconds; HIP's first call takes up to 2 on a machine with 8 GPUs

#: The child finds a target in hipGetDeviceProperties' result by a pattern, since the layout depends
#: on the release. The child treats hipErrorNoDevice as zero devices.
_ASK = """
import ctypes, json, re, sys
hip = ctypes.CDLL(sys.argv[1])
hip.hipGetErrorName.restype = ctypes.c_char_p
number, devices = ctypes.c_int(0), []
error = hip.hipGetDeviceCount(ctypes.byref(number))
why = hip.hipGetErrorName(error).decode() if error not in (0, 100) else ""
for device in range(0 if error else number.value):
    properties, name = ctypes.create_string_buffer(65536), ctypes.create_string_buffer(256)
    if hasattr(hip, "hipGetDeviceProperties"):
        hip.hipGetDeviceProperties(properties, device)
    handle = ctypes.c_int(0)
    named = hasattr(hip, "hipDeviceGet") and hasattr(hip, "hipDeviceGetName")
    if named and hip.hipDeviceGet(ctypes.byref(handle), device) == 0:
        hip.hipDeviceGetName(name, 256, handle)
    target = re.search(rb"gfx[0-9a-f]+(:[a-z]+[+-])*(?=\\0)", properties.raw)
    major, minor = ctypes.c_int(0), ctypes.c_int(0)
    if not target and hasattr(hip, "hipDeviceComputeCapability"):
        hip.hipDeviceComputeCapability(ctypes.byref(major), ctypes.byref(minor), device)
    capability = f"sm_{major.value}{minor.value}" if major.value else ""
    said = name.value or properties.raw[:256].split(b"\\0")[0]
    devices.append([said.decode(errors="replace") or "without a name",
                    target[0].decode() if target else capability])
if hasattr(hip, "hipRuntimeGetVersion"):
    hip.hipRuntimeGetVersion(ctypes.byref(number))
print(json.dumps([number.value, devices, why]), flush=True)
"""


class Hip(NamedTuple):
    """A HIP library's version, as hipRuntimeGetVersion returns it, and its devices: the name and
    the target of each. A target is such as gfx90a:xnack- or, over NVIDIA's driver, sm_90. `error`
    says why there are none; empty if HIP has found none."""

    version: int = 0
    devices: tuple[tuple[str, str], ...] = ()
    error: str = ""


def ask(hip: str, environment: Mapping[str, str]) -> Hip:
    """Asks the HIP library at the path `hip`, in the environment of a program."""
    unwanted = ("LD_PRELOAD", "MGPU_RT_STATS", "MGPU_RT_TRACE")
    child = {name: value for name, value in environment.items() if name not in unwanted}
    command = [sys.executable, "-I", "-c", _ASK, hip]
    try:
        done = subprocess.run(
            command, env=child, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT
        )
        version, devices, error = json.loads(done.stdout.splitlines()[-1])
        return Hip(version, tuple((name, target) for name, target in devices), error)
    except OSError as error:
        return Hip(error=f"no process could be started: {error.strerror}")
    except subprocess.TimeoutExpired:
        return Hip(error=f"it did not answer in {TIMEOUT:.0f} s: see dmesg")
    except (ValueError, IndexError):
        said = done.stderr.decode(errors="replace").strip().splitlines()
        return Hip(error=(said or [f"a process that asked it ended with {done.returncode}"])[-1])
