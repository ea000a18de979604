"""Finds the HIP libraries that a program on this machine would find."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from mgpu_rt import _layout

PROBE = "mgpu-rt-probe"
HSA = "libhsa-runtime64.so.1"

#: HIP's file names, newest first. csrc/runtime/driver/hip_open.c has the same names.
NAMES = tuple(f"libamdhip64.so{ending}" for ending in (".8", ".7", ".6", ".5", ""))
OPT = "/opt/rocm"

#: The folders that every loader searches. The libraries that HIP loads are in HIP's folder, or in a
#: folder that every loader searches.
LOADERS_FOLDERS = (Path("/usr/lib/x86_64-linux-gnu"), Path("/usr/lib64"), Path("/usr/lib"))

#: The libraries that emulate AMD's driver, and a string for each library. A ROCr that contains a
#: library's string loads this library. ROCr up to version 6.1 contains the name of a driver
#: library, libhsakmt.so.1. ROCr 7.2 and later contain the name hsaKmtQueueRingDoorbell. With
#: HSA_ENABLE_DTIF=1, ROCr looks up the function hsaKmtQueueRingDoorbell in libdtif.so. (The name
#: libdtif.so is too short to be found as text.)
SEAMS = {"libhsakmt.so.1": b"libhsakmt.so.1", "libdtif.so": b"hsaKmtQueueRingDoorbell"}


def probe() -> str:
    """Returns the path of mgpu-rt-probe, the smallest program that uses the library."""
    return str(_layout.PREFIX / "lib" / PROBE)


#: LACKING contains the errors with which fork fails if memory runs out or the process limit is
#: reached. HOW_TO_START_ONE is the advice for the user.
LACKING = (errno.EAGAIN, errno.ENOMEM)
HOW_TO_START_ONE = "free memory, or see ulimit -u"


class NoProcess(OSError):
    """Raised if this machine cannot start another process now."""


def why_not(path: str) -> str:
    """Returns the reason why `path` is no library, or an empty string if `path` is an ELF file.
    `path` is the value of MGPU_RT_HIP."""
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


def find(base: Mapping[str, str]) -> dict[str, str]:
    """Returns the paths of the HIP libraries that a program with the environment `base` would try,
    first to last (csrc/runtime/driver/hip_open.c), and where each was found. Raises NoProcess if no
    process can be started."""
    rocm = base.get("ROCM_PATH")
    candidates = [
        *((f"{rocm}/lib/{name}", "ROCM_PATH") for name in NAMES if rocm),
        *((path, "the loader's paths") for path in _loaders(base)),
        *((f"{OPT}/lib/{name}", OPT) for name in NAMES),
    ]
    files: dict[str, tuple[str, str]] = {}
    for path, origin in candidates:
        if os.path.isfile(path):
            files.setdefault(os.path.realpath(path), (path, origin))
    return dict(files.values())


def _loaders(base: Mapping[str, str]) -> list[str]:
    """Returns the paths that the loader finds for HIP's names. The loader reads LD_LIBRARY_PATH
    when a process starts, so a child process asks the loader. The child ends without running any
    code of the libraries."""
    asked = {"LD_PRELOAD": " ".join(NAMES), "LD_TRACE_LOADED_OBJECTS": "1"}
    try:
        result = subprocess.run(
            [sys.executable], env={**base, **asked}, capture_output=True, timeout=60
        )
    except (OSError, subprocess.SubprocessError) as error:
        if isinstance(error, OSError) and error.errno in LACKING:
            why = f"no process could be started: {error.strerror}; {HOW_TO_START_ONE}"
            raise NoProcess(why) from None
        return []
    return re.findall(r"^\s*libamdhip64\.so\S* => (.+) \(0x", os.fsdecode(result.stdout), re.M)


def seams(hip: str) -> list[str]:
    """Returns the libraries in SEAMS that ROCr loads for a HIP library."""
    content = _rocr(hip)
    return [name for name, mark in SEAMS.items() if mark in content]


def knows(hip: str, target: str) -> bool:
    """Returns False if the HIP library's ROCr names other targets but not `target`. A target is a
    name such as gfx942."""
    content = _rocr(hip)
    return target.encode() in content or b"gfx90" not in content


def _rocr(hip: str) -> bytes:
    """Returns the content of the ROCr library that a HIP library loads. Returns empty bytes if ROCr
    cannot be read, or if the library is another one that does not name ROCr."""
    if not _names_rocr(hip):
        return b""
    folders = (Path(os.path.realpath(hip)).parent, *LOADERS_FOLDERS)
    runtime = next((path for folder in folders if (path := folder / HSA).is_file()), None)
    try:
        return runtime.read_bytes() if runtime else b""
    except OSError:
        return b""


def _names_rocr(hip: str) -> bool:
    import mmap

    try:
        with (
            open(hip, "rb", opener=_without_waiting) as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
        ):
            return content.find(HSA.encode()) >= 0
    except (OSError, ValueError):  # unreadable, a FIFO, or empty
        return False


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)
