"""The devices of a benchmark: a stub of HIP, AMD's HIP without a GPU, a real GPU."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.setup import native
from mgpu_rt._cli import softgpu
from mgpu_rt._cli.errors import NoDevice

NAMES = ("stub", "softgpu", "cuda", "hip")
CUDA_CHIP = "sm_90"
AMD_CHIP = "gfx90a"


class Unavailable(RuntimeError):
    """Raised if the device is missing; the message says why."""


@dataclass(frozen=True)
class Device:
    """One device, and the environment of a process that runs on it."""

    name: str
    title: str  # for reports
    chip: str  # to lower for
    environment: Mapping[str, str]
    driver: str = ""
    #: For each program's name, the iterations of the program's loop; few on an emulated device.
    iterations: Mapping[str, int] = field(default_factory=dict)
    repetitions: int = 20

    @property
    def hip(self) -> Path:
        """Returns the library that serves as HIP."""
        return Path(self.environment["MGPU_RT_HIP"])

    @property
    def real(self) -> bool:
        """Returns whether the device is a real GPU."""
        return self.name in ("cuda", "hip")


_EMULATED_ITERATIONS = {
    **{"forum": 20, "churn": 20, "spin": 1},
    **{"forkjoin": 20, "forkjoin-nowait": 1, "grow": 20, "ragged": 5},
}
ITERATIONS = {
    **{"forum": 1000, "churn": 500, "spin": 5},
    **{"forkjoin": 20, "forkjoin-nowait": 5, "grow": 400, "ragged": 100},
}


def _stub() -> Device:
    native.need(native.STUB)
    words = "no device: a stub of HIP whose functions return at once"
    return Device("stub", words, AMD_CHIP, native.stub_environment(), iterations=ITERATIONS)


def _softgpu() -> Device:
    try:
        environment = softgpu.environment(native.plain_environment())
    except NoDevice as reason:
        raise Unavailable(str(reason)) from None
    words = "AMD's HIP 5.2.3 on an emulated gfx90a"
    return Device(
        "softgpu", words, AMD_CHIP, environment, "HIP 5.2.3", _EMULATED_ITERATIONS, repetitions=3
    )


def _cuda() -> Device:
    command = ("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")
    found = _query(*command, lines=True).splitlines()
    if not found:
        raise Unavailable("nvidia-smi names no NVIDIA GPU here")
    name, driver = found[0].split(", ")
    try:
        cuda = importlib.import_module("mgpu_rt._cli.cuda")
        environment = cuda.environment(native.plain_environment())
    except (ImportError, RuntimeError) as reason:
        raise Unavailable(str(reason)) from None
    library = cuda.driver()
    if "/" in library:  # a path that no loader's configuration names
        environment["LD_LIBRARY_PATH"] = os.path.dirname(library)
    words = f"{name}, driver {driver}, through cuhip"
    return Device("cuda", words, CUDA_CHIP, environment, driver, ITERATIONS)


def _hip() -> Device:
    agents = _query("rocm_agent_enumerator", lines=True).split()
    chips = [agent for agent in agents if agent != "gfx000"]
    if not chips:
        raise Unavailable("rocm_agent_enumerator names no AMD GPU here")
    library = os.environ.get("MGPU_RT_HIP", "/opt/rocm/lib/libamdhip64.so")
    if not Path(library).exists():
        raise Unavailable(f"{library} is missing: MGPU_RT_HIP says where HIP is")
    environment = {**native.plain_environment(), "MGPU_RT_HIP": library}
    driver = _query("hipconfig", "--version")
    words = f"{chips[0]}, HIP {driver}"
    return Device("hip", words, chips[0], environment, driver, ITERATIONS)


def _query(*command: str, lines: bool = False) -> str:
    """Returns the first line of a tool's output, or all lines; empty if the tool is missing or
    fails."""
    if shutil.which(command[0]) is None:
        return ""
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        return ""
    return done.stdout if lines else done.stdout.partition("\n")[0].strip()


_MAKERS = {"stub": _stub, "softgpu": _softgpu, "cuda": _cuda, "hip": _hip}


def find(name: str) -> Device:
    """Returns the device ``name``. Raises Unavailable if the device is missing, and native.Failed
    if a file was not built."""
    return _MAKERS[name]()


def find_all() -> tuple[list[Device], list[str]]:
    """Returns the devices that this machine has, and the reason for each missing device."""
    devices, reasons = [], []
    for name in NAMES:
        try:
            devices.append(find(name))
        except (Unavailable, native.Failed) as reason:
            reasons.append(f"{name}: {reason}")
    return devices, reasons
