"""The HIP libraries of this machine, as a program would find them."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mgpu_rt import _layout

PROBE = "mgpu-rt-probe"
HIP = "libamdhip64.so.[0-9]"
HSA = "libhsa-runtime64.so.1"

#: The folders that every loader searches. The libraries that HIP loads are in one of these folders,
#: or in HIP's folder.
LOADERS_FOLDERS = (Path("/usr/lib/x86_64-linux-gnu"), Path("/usr/lib64"), Path("/usr/lib"))

#: A string for each library that emulates AMD's driver. A ROCr that contains the string loads the
#: library. ROCr up to 6.1 contains the name of its driver library. ROCr 7.2 and later contain the
#: name of a function, which ROCr looks up in libdtif.so if HSA_ENABLE_DTIF=1. (The name libdtif.so
#: is too short to be found as text.)
SEAMS = {"libhsakmt.so.1": b"libhsakmt.so.1", "libdtif.so": b"hsaKmtQueueRingDoorbell"}


@dataclass(frozen=True)
class Hip:
    """A HIP library, and the place where it was found."""

    origin: str
    path: str


def probe() -> str:
    """Returns the path of the program that prints which HIP libraries the C library finds."""
    return str(_layout.PREFIX / "lib" / PROBE)


#: The errors of fork if the machine's memory or number of processes is exhausted, and the advice
#: for the user.
LACKING = (errno.EAGAIN, errno.ENOMEM)
HOW_TO_START_ONE = "free memory, or see ulimit -u"


class NoProcess(OSError):
    """Raised if this machine cannot start another process now."""


def why_not(path: str) -> str:
    """Returns the reason why `path`, the value of MGPU_RT_HIP, is no library; empty if `path` is an
    ELF file."""
    if not os.path.exists(path):
        return f"MGPU_RT_HIP={path}: there is no such file"
    if os.path.isfile(path):
        try:
            with open(path, "rb") as file:
                if file.read(4) == b"\x7fELF":
                    return ""
        except OSError as error:
            return f"MGPU_RT_HIP={path}: {error.strerror}"
    return f"MGPU_RT_HIP={path} is no library: name the file, as /opt/rocm/lib/libamdhip64.so"


def find(base: Mapping[str, str]) -> list[Hip]:
    """Returns, in order, the HIP libraries that a program would try in this environment
    (csrc/runtime/driver/hip_search.h). A child process lists the libraries, because the loader
    reads LD_LIBRARY_PATH only when a process starts. If the child's program is missing, this
    function itself searches the loader's folders. Raises NoProcess if no process can be started."""
    if not Path(probe()).exists():
        found = (path for folder in LOADERS_FOLDERS for path in sorted(folder.glob(HIP)))
        return [Hip(str(path.parent), str(path)) for path in found]
    library = str(_layout.PREFIX / "lib" / _layout.LIBRARY)
    environment = {name: value for name, value in base.items() if name != "LD_PRELOAD"}
    if " " not in library:  # LD_PRELOAD can name it; otherwise the loader finds it by the probe
        environment["LD_PRELOAD"] = library
    try:
        result = subprocess.run(
            [probe(), "--hip"], env=environment, capture_output=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        if isinstance(error, OSError) and error.errno in LACKING:
            why = f"no process could be started: {error.strerror}; {HOW_TO_START_ONE}"
            raise NoProcess(why) from None
        return []
    lines = (line.partition("\t") for line in os.fsdecode(result.stdout).splitlines())
    return [Hip(origin, path) for origin, _, path in lines]


def seams(hip: str) -> list[str]:
    """Returns the libraries of SEAMS that the ROCr of a HIP library loads."""
    content = _rocr(hip)
    return [name for name, mark in SEAMS.items() if mark in content]


def knows(hip: str, target: str) -> bool:
    """Returns False if the ROCr of a HIP library contains the names of other targets, and lacks the
    name `target`, such as gfx942."""
    content = _rocr(hip)
    return target.encode() in content or b"gfx90" not in content


def _rocr(hip: str) -> bytes:
    """Returns the content of the ROCr that a HIP library loads; empty if no ROCr can be read."""
    folders = (Path(os.path.realpath(hip)).parent, *LOADERS_FOLDERS)
    runtime = next((path for folder in folders if (path := folder / HSA).is_file()), None)
    try:
        return runtime.read_bytes() if runtime else b""
    except OSError:
        return b""
