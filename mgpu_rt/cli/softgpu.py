"""AMD's HIP without a GPU: what a process needs to run on the software device.

AMD's libamdhip64 reaches the kernel driver through ROCr, and ROCr through a library of the
driver's. The ones below ``softgpu`` (layout.DEVICES) emulate the devices that ``MGPU_RT_SOFTGPU``
names, so a process that finds them first runs AMD's own runtime on these.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from mgpu_rt import hip_search, layout
from mgpu_rt.packages import how_to_install

BUILD = layout.DEVICES
DRIVER = "libhsakmt.so.1"
DTIF = "libdtif.so"
DEFAULT_TARGETS = "gfx90a"


class SoftGpuUnavailable(RuntimeError):
    """A part of the software device is missing; the message says which and how to get it."""


def driver(build: Path | None = None) -> Path:
    """The driver library that emulates the devices. Raises SoftGpuUnavailable."""
    library = (build or BUILD) / "softgpu" / DRIVER
    if not library.exists():
        raise SoftGpuUnavailable(f"{library} is missing: {layout.how_to_get('the software GPU')}")
    return library


def serves(hip: str, build: Path | None = None) -> bool:
    """True if this HIP can run on the software device."""
    folder = (build or BUILD) / "softgpu"
    return any((folder / name).exists() for name in hip_search.seams(hip))


def hip(base: Mapping[str, str] | None = None, build: Path | None = None) -> Path:
    """The HIP library to run: ``MGPU_RT_HIP``, else the newest that can. Raises
    SoftGpuUnavailable."""
    environment = os.environ if base is None else base
    named = environment.get("MGPU_RT_HIP")
    if named:
        if not Path(named).exists():
            raise SoftGpuUnavailable(f"MGPU_RT_HIP={named}: there is no such file")
        return Path(named)
    found = hip_search.find(environment)
    for candidate in found:
        if serves(candidate.path, build):
            return Path(candidate.path)
    if found:
        unfit = ", ".join(candidate.path for candidate in found)
        raise SoftGpuUnavailable(
            f"it runs AMD's HIP, and none here can be run so ({unfit}): {_how_to_get_hip()}, or "
            "set MGPU_RT_HIP to the path of another"
        )
    raise SoftGpuUnavailable(
        f"it runs AMD's HIP library, libamdhip64.so, and there is none: {_how_to_get_hip()}, or "
        "set MGPU_RT_HIP to its path"
    )


def _how_to_get_hip() -> str:
    return how_to_install("libamdhip64-5", "install AMD's ROCm, up to 6.1 or from 7.2 on")


def environment(
    base: Mapping[str, str] | None = None, *, build: Path | None = None
) -> dict[str, str]:
    """The whole environment for a child process that is to run on the software device.

    ``base`` is what the child would have got otherwise, by default this process's own. Names that
    it sets stay as they are: ``MGPU_RT_HIP``, ``MGPU_RT_SOFTGPU``. ``build`` is the directory that
    make filled. Raises SoftGpuUnavailable.
    """
    result = dict(os.environ if base is None else base)
    directory = str(driver(build).parent)
    paths = [path for path in result.get("LD_LIBRARY_PATH", "").split(":") if path]
    result["LD_LIBRARY_PATH"] = ":".join([directory, *(p for p in paths if p != directory)])
    result["MGPU_RT_HIP"] = str(hip(result, build))
    result.setdefault("MGPU_RT_SOFTGPU", DEFAULT_TARGETS)
    if Path(directory, DTIF).exists():
        result.setdefault("HSA_ENABLE_DTIF", "1")
    return result
