"""Prepares processes that run programs lowered to NVVM, with HIP over NVIDIA's driver.

The library in the folder ``cuhip`` (layout.DEVICES) implements HIP's functions over NVIDIA's
libcuda. The cuhip library opens libcuda at its first call. Programs call the same mgpu* functions
on AMD's and NVIDIA's GPUs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from mgpu_rt import _layout
from mgpu_rt._cli.errors import NoDevice

BUILD = _layout.DEVICES
HIP = "libamdhip64.so"

#: The driver library's name for the loader, and the library's paths in folders that the loader does
#: not search by default (csrc/cuhip/driver.c).
DRIVERS = (
    "libcuda.so.1",
    "/usr/local/nvidia/lib64/libcuda.so.1",
    "/usr/lib/wsl/lib/libcuda.so.1",
)


def hip() -> Path:
    library = BUILD / "cuhip" / HIP
    if not library.exists():
        raise _missing(f"{library} is missing: {_layout.how_to_get('it')}")
    return library


def _missing(why: str) -> NoDevice:
    return NoDevice(f"no NVIDIA GPUs: {why}")


#: The device files of NVIDIA's GPUs: for Linux, for the Windows Subsystem for Linux, and for Tegra.
GPUS = (Path("/dev/nvidiactl"), Path("/dev/dxg"), Path("/dev/nvhost-gpu"))


def present(base: Mapping[str, str]) -> bool:
    """Returns True if the machine has an NVIDIA GPU, its driver's library, and cuhip."""
    if not base.get("MGPU_RT_CUDA") and not any(gpu.exists() for gpu in GPUS):
        return False
    try:
        hip()
        driver(base)
    except NoDevice:
        return False
    return True


def driver(base: Mapping[str, str] = os.environ) -> str:
    """Returns the library that ``MGPU_RT_CUDA`` names; by default, returns the first library of
    DRIVERS that can be opened. Raises NoDevice.

    Opening the driver library starts no driver. Only the driver's first call shows whether the
    machine has a GPU.
    """
    from ctypes import CDLL

    named = base.get("MGPU_RT_CUDA")
    for name in (named,) if named else DRIVERS:
        try:
            CDLL(name)
        except OSError:
            continue
        return name
    if named:
        raise _missing(f"MGPU_RT_CUDA={named}: no library that can be opened")
    raise _missing(
        "NVIDIA's libcuda.so.1 was not found: install the driver (in a container: run it with "
        "--gpus all), or set MGPU_RT_CUDA to its path"
    )


def environment(base: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Returns the whole environment of a child process on NVIDIA's GPUs: ``base``, with the device.
    Raises NoDevice."""
    return {**base, "MGPU_RT_HIP": str(hip())}
