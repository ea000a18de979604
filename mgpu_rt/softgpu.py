"""AMD's HIP without a GPU: what a process needs to run on the software device.

Debian's libamdhip64 reaches the kernel driver through libhsakmt.so.1 only. The one under
``build/softgpu`` emulates the devices that ``MGPU_RT_SOFTGPU`` names, so a process that finds it
first runs AMD's own runtime on them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

BUILD = Path(__file__).resolve().parent.parent / "build"
DRIVER = "libhsakmt.so.1"
HIP = "libamdhip64.so.5"
DEFAULT_TARGETS = "gfx90a"

# Where Debian and its kin keep libraries; HIP 5.2.3 is Debian 12's, for x86-64.
_LIBRARY_DIRECTORIES = (Path("/usr/lib/x86_64-linux-gnu"), Path("/usr/lib64"), Path("/usr/lib"))


class SoftGpuUnavailable(RuntimeError):
    """A part of the software device is missing; the message says which and how to get it."""


def driver(build: Path | None = None) -> Path:
    """The driver library that emulates the devices. Raises SoftGpuUnavailable."""
    library = (build or BUILD) / "softgpu" / DRIVER
    if not library.exists():
        raise SoftGpuUnavailable(f"{library} is missing: run `make` to build it")
    return library


def hip(base: Mapping[str, str] | None = None) -> Path:
    """The HIP library to run: ``MGPU_RT_HIP``, else Debian's. Raises SoftGpuUnavailable."""
    named = (os.environ if base is None else base).get("MGPU_RT_HIP")
    if named:
        if not Path(named).exists():
            raise SoftGpuUnavailable(f"MGPU_RT_HIP={named}: there is no such file")
        return Path(named)
    for directory in _LIBRARY_DIRECTORIES:
        if (directory / HIP).exists():
            return directory / HIP
    raise SoftGpuUnavailable(f"AMD's {HIP} is missing: apt-get install libamdhip64-5")


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
    result["MGPU_RT_HIP"] = str(hip(result))
    result.setdefault("MGPU_RT_SOFTGPU", DEFAULT_TARGETS)
    return result
