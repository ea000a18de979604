"""Prepares processes that run AMD's HIP without a GPU, on the software device.

AMD's libamdhip64 calls ROCr, and ROCr calls the kernel driver through the driver's user-space
library. The libraries in the folder ``softgpu`` (layout.DEVICES) emulate the devices in
``MGPU_RT_SOFTGPU``; if a process finds these libraries first, AMD's runtime uses the emulated
devices.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from mgpu_rt import _hip_search, _layout
from mgpu_rt._cli.errors import NoDevice
from mgpu_rt._packages import how_to_install

BUILD = _layout.DEVICES
DRIVER = "libhsakmt.so.1"
DTIF = "libdtif.so"
DEFAULT_TARGETS = "gfx90a"

#: The emulated devices (softgpu/src/config.c).
TARGETS = ("gfx90a", "gfx906", "gfx908", "gfx942")

#: The first HIP release that supports all emulated devices.
SINCE = "5.7"


def _missing(why: str) -> NoDevice:
    return NoDevice(f"no software GPU: {why}")


def driver() -> Path:
    """Returns the driver library that emulates the devices. Raises NoDevice."""
    library = BUILD / "softgpu" / DRIVER
    if not library.exists():
        raise _missing(f"{library} is missing: {_layout.how_to_get('the software GPU')}")
    return library


def serves(hip: str, seam: str = "") -> bool:
    """Returns True if this HIP can run on the software device. If `seam` names a driver library,
    HIP must load this library."""
    folder = BUILD / "softgpu"
    names = _hip_search.seams(hip)
    return any((folder / name).exists() for name in names if seam in ("", name))


def targets(base: Mapping[str, str]) -> list[str]:
    """Returns the devices that ``MGPU_RT_SOFTGPU`` names. The device itself refuses unknown
    settings. Raises NoDevice for an unknown device."""
    text = base.get("MGPU_RT_SOFTGPU") or DEFAULT_TARGETS
    named, _ = _items(text)
    if wrong := [name for name in named if name not in TARGETS]:
        raise _missing(f"MGPU_RT_SOFTGPU={text}: '{wrong[0]}' is none of {', '.join(TARGETS)}")
    return named or [DEFAULT_TARGETS]


#: Lets the device's driver library read its settings.
_CONFIGURE = "import ctypes, sys; ctypes.CDLL(sys.argv[1]).hsaKmtOpenKFD()"


def unusable(base: Mapping[str, str]) -> list[str]:
    """Returns a sentence about each value in MGPU_RT_SOFTGPU that is wrong. The device itself reads
    the settings, without HIP."""
    from mgpu_rt._cli import child

    try:
        targets(base)
    except NoDevice as error:
        return [error.message]
    library = BUILD / "softgpu" / DRIVER
    if not _items(base.get("MGPU_RT_SOFTGPU", ""))[1] or not library.exists():
        return []
    asked = [sys.executable, "-I", "-c", _CONFIGURE, str(library)]
    said = child.run(asked, base, limit=60, **child.PIPES).stderr
    return re.findall(r"^softgpu: (.+)", said, re.MULTILINE)


def with_targets(names: str, base: Mapping[str, str]) -> str:
    """Returns ``MGPU_RT_SOFTGPU`` with other devices and unchanged settings."""
    return ",".join((names, *_items(base.get("MGPU_RT_SOFTGPU", ""))[1]))


def _items(text: str) -> tuple[list[str], list[str]]:
    """Splits the variable's value into devices and settings."""
    items = text.split(",")
    return [item for item in items if "=" not in item], [item for item in items if "=" in item]


def hip(base: Mapping[str, str] = os.environ, seam: str = "") -> Path:
    """Returns a HIP library that supports the devices: ``MGPU_RT_HIP``, or the newest installed
    HIP. ``seam`` is the driver library that the HIP library must load. Raises
    NoDevice."""
    wanted = targets(base)
    named = base.get("MGPU_RT_HIP")
    if named and (why := _hip_search.why_not(named)):
        raise _missing(why)
    found = [*map(Path, [named] if named else _hip_search.find(base))]
    fit = [path for path in found if named or serves(str(path), seam)]
    for path in fit:
        if all(_hip_search.knows(str(path), target) for target in wanted):
            return path
    if fit:
        raise _missing(_unknown_to(fit, wanted, found if named else []))
    unfit = ", ".join(map(str, found))
    there = f"none here can be run so ({unfit})" if found else "there is none"
    how = how_to_install("libamdhip64-5", "install AMD's ROCm, up to 6.1 or from 7.2 on")
    which = "HIP 5" if seam == DRIVER else "HIP, libamdhip64.so"
    raise _missing(
        f"it runs AMD's {which}, and {there}: {how}, or set MGPU_RT_HIP to the path of another"
    )


def _unknown_to(fit: list[Path], wanted: list[str], named: list[Path]) -> str:
    """Explains why no HIP library can run these devices."""
    unknown = next(t for t in wanted if not all(_hip_search.knows(str(path), t) for path in fit))
    which = f"{', '.join(map(str, fit))} {'does' if len(fit) == 1 else 'do'}"
    instead = "unset MGPU_RT_HIP, and " if named else ""
    return f"{which} not know {unknown}: {instead}install HIP {SINCE} or later (docs/ci.md)"


def environment(base: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Returns the whole environment of a child process on the software device.

    ``base`` is the child's environment before the device is added. The child keeps the variables
    ``MGPU_RT_HIP`` and ``MGPU_RT_SOFTGPU`` that ``base`` sets. Raises NoDevice.
    """
    result = dict(base)
    directory = str(driver().parent)
    paths = [path for path in result.get("LD_LIBRARY_PATH", "").split(":") if path]
    library = hip(result)
    result["LD_LIBRARY_PATH"] = ":".join(dict.fromkeys([directory, *paths]))
    result["MGPU_RT_HIP"] = str(library)
    result.setdefault("MGPU_RT_SOFTGPU", DEFAULT_TARGETS)
    if Path(directory, DTIF).exists():
        result.setdefault("HSA_ENABLE_DTIF", "1")
        # By default HIP 7's memory pools manage virtual memory, which softgpu does not support.
        result.setdefault("DEBUG_HIP_MEM_POOL_VMHEAP", "0")
    return result
