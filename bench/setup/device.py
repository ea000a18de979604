"""The devices of a benchmark: a stub of HIP, AMD's HIP without a GPU, a real GPU."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.setup import native
from mgpu_rt._cli import cuda, softgpu
from mgpu_rt._cli.errors import NoDevice

NAMES = ("stub", "softgpu", "cuda", "hip")
CUDA_CHIP = "sm_90"
AMD_CHIP = "gfx90a"


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
    environment = softgpu.environment(native.plain_environment())
    words = "AMD's HIP 5.2.3 on an emulated gfx90a"
    return Device(
        "softgpu", words, AMD_CHIP, environment, "HIP 5.2.3", _EMULATED_ITERATIONS, repetitions=3
    )


def _cuda() -> Device:
    command = ("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")
    found = _query(*command)
    if not found:
        raise NoDevice("nvidia-smi names no NVIDIA GPU here")
    name, driver = found[0].split(", ")
    environment = cuda.environment(native.plain_environment())
    library = cuda.driver()
    if "/" in library:  # a path that no loader's configuration names
        environment["LD_LIBRARY_PATH"] = os.path.dirname(library)
    words = f"{name}, driver {driver}, through cuhip"
    return Device("cuda", words, CUDA_CHIP, environment, driver, ITERATIONS)


def _hip() -> Device:
    chips = [agent for agent in _query("rocm_agent_enumerator") if agent != "gfx000"]
    if not chips:
        raise NoDevice("rocm_agent_enumerator names no AMD GPU here")
    library = os.environ.get("MGPU_RT_HIP", "/opt/rocm/lib/libamdhip64.so")
    if not Path(library).exists():
        raise NoDevice(f"{library} is missing: MGPU_RT_HIP says where HIP is")
    environment = {**native.plain_environment(), "MGPU_RT_HIP": library}
    driver = "".join(_query("hipconfig", "--version")[:1])
    words = f"{chips[0]}, HIP {driver}"
    return Device("hip", words, chips[0], environment, driver, ITERATIONS)


def _query(*command: str) -> list[str]:
    """Returns the lines of a tool's output; none if the tool is missing or fails."""
    if shutil.which(command[0]) is None:
        return []
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    return [line.strip() for line in done.stdout.splitlines()] if done.returncode == 0 else []


_MAKERS = {"stub": _stub, "softgpu": _softgpu, "cuda": _cuda, "hip": _hip}


def find(name: str) -> Device:
    """Returns the device ``name``. Raises NoDevice if the device is missing, and native.Failed if a
    file was not built."""
    return _MAKERS[name]()


def find_all() -> tuple[list[Device], list[str]]:
    """Returns the devices that this machine has, and the reason for each missing device."""
    devices, reasons = [], []
    for name in NAMES:
        try:
            devices.append(find(name))
        except (NoDevice, native.Failed) as reason:
            reasons.append(f"{name}: {reason}")
    return devices, reasons
