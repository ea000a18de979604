"""Finds the GPU to be tested, and the environment of the processes that use it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mgpu_rt import _hip_search, _layout
from mgpu_rt._cli import child, hip_devices, preload
from mgpu_rt._cli.doctor import other_calls
from mgpu_rt._cli.errors import CommandError
from mgpu_rt._record_json import hip_release
from mgpu_rt._selftest.bundle import Bundle, chip_of

PROGRAMS = _layout.PREFIX / "lib" / "selftest"
PLAYER, MEASURE = PROGRAMS / "player", PROGRAMS / "measure"

START = 60.0  # seconds for HIP's first start on a machine
LIMIT = 32 << 20  # bytes of device memory that the library keeps

#: For each kind of driver, the variable that restricts the visible devices.
_VISIBLE = {"cuda": "CUDA_VISIBLE_DEVICES", "hip": "HIP_VISIBLE_DEVICES"}


@dataclass(frozen=True)
class Machine:
    """The machine on which the tests run."""

    kind: str  # hip, cuda, softgpu
    name: str  # of the device
    target: str
    devices: int
    hip: str  # its release
    driver: str
    environment: Mapping[str, str]  # environment of every child
    both: Mapping[str, str] | None  # `environment` with a second device, if there is one
    chip: str  # chip in the bundle
    reports: bool  # HIP reports calls of other code, so hits need not query HIP
    player: Path = PLAYER


def find(
    device: str,
    bundle: Bundle,
    library: Path | None = None,
    base: Mapping[str, str] = os.environ,
) -> Machine:
    """Finds the GPU to test, which is HIP's first. `library` is the path of a library to test
    instead of this installation's library. Raises CommandError."""
    kind, base = preload.kind(preload.choose(device, base), base)
    environment = _environment(kind, base, library)
    values = hip_devices.of(kind, environment)
    gpus = values["devices"]
    target = gpus[0]["target"]
    chip = chip_of(target)
    if chip not in bundle.chips:
        raise CommandError(
            f"there are no kernels for {target} here: with an LLVM that knows {target}, "
            f"add it to tests/proofs/programs/bundle.py in a checkout"
        )
    alone = _only(kind, environment, 1)
    both = _only(kind, environment, 2) if len(gpus) > 1 else None
    release = "cuhip" if kind == "cuda" else hip_release(values["version"]) or ""
    return Machine(
        kind, gpus[0]["name"], target, len(gpus), release,
        _driver(kind, values["driver"]), alone, both, chip, _reports(alone),
    )  # fmt: skip


def _environment(kind: str, base: Mapping[str, str], library: Path | None) -> dict[str, str]:
    """Returns the environment of the child processes: the user's environment without MGPU_RT_
    options, but with the device's settings. The library search path begins with the library's
    folder."""
    kept = ("MGPU_RT_HIP", "MGPU_RT_CUDA", "MGPU_RT_SOFTGPU")
    unwanted = ("MGPU_RT_", "LD_PRELOAD", "DRIVER_")
    clean = {n: v for n, v in base.items() if n in kept or not n.startswith(unwanted)}
    made = preload.device_environment(kind, clean)
    if not made.get("MGPU_RT_HIP"):
        made["MGPU_RT_HIP"] = next(iter(_hip_search.find(made)))
    folder = str((library or Path(preload.runtime())).parent)
    search = [folder, *filter(None, made.get("LD_LIBRARY_PATH", "").split(":"))]
    made["LD_LIBRARY_PATH"] = ":".join(dict.fromkeys(search))
    made["MGPU_RT_MEMORY_LIMIT"] = str(LIMIT)
    if kind == "softgpu":  # else HIP reports a large BAR, and MGPU_RT_SYNC=lazy has no effect
        made["ROC_ENABLE_LARGE_BAR"] = "0"
    return made


def _reports(environment: Mapping[str, str]) -> bool:
    words = {**environment, "MGPU_RT_VERBOSE": "1", "MGPU_RT_MANAGER": "off"}
    ended = child.run([_hip_search.probe()], words, limit=START, **child.PIPES)
    return other_calls(ended.stderr) == "none"


def _only(kind: str, environment: Mapping[str, str], count: int) -> dict[str, str]:
    """Returns the environment in which only the first `count` devices are visible."""
    variable = _VISIBLE.get(kind)
    if variable is None:
        return dict(environment)
    names = [name for name in environment.get(variable, "").split(",") if name] or ["0", "1"]
    return {**environment, variable: ",".join(names[:count])}


#: The file in which a kernel driver states its version.
_DRIVERS = {"hip": "/sys/module/amdgpu/version", "cuda": "/proc/driver/nvidia/version"}
EMULATED = "emulated"  # in place of a version
_NUMBER = re.compile(r"\b\d+\.\d+(?:\.\d+)*\b")


def _driver(kind: str, number: int) -> str:
    try:
        found = _NUMBER.search(Path(_DRIVERS.get(kind, "/dev/null")).read_text())
    except OSError:
        found = None
    if kind == "cuda":
        return f"{found[0] if found else 'unknown'}, CUDA {number // 1000}.{number % 1000 // 10}"
    return found[0] if found else EMULATED if kind == "softgpu" else "of the kernel"


def processor() -> str:
    """Returns the processor's name according to Linux."""
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.M)
    except OSError:
        return ""
    return found[1] if found else ""
