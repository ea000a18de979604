"""What `mgpu-rt run` gives a program: an environment in which it finds mgpu_rt and a device."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import stat
import struct
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from mgpu_rt import library_path, rocm
from mgpu_rt.cli import cuda, softgpu
from mgpu_rt.cli.problem import Problem

DEVICES = ("auto", "hip", "softgpu", "cuda")
KFD = Path("/dev/kfd")

#: Tells the library which Python `mgpu-rt run` runs in: one that has cffi and this package.
STARTED_BY = "MGPU_RT_RUN_PYTHON"

ELF_HEADER, ELFCLASS64, PT_INTERP = 64, 2, 3


# ---- the device ----


def automatic(base: Mapping[str, str]) -> tuple[str, str]:
    """The device that `auto` stands for, and why, in words. Raises Problem if there is none.

    AMD's GPU, else NVIDIA's, else the software GPU. A HIP library that MGPU_RT_HIP names is what
    the user wants.
    """
    if base.get("MGPU_RT_HIP"):
        return "hip", "MGPU_RT_HIP names the HIP library"
    without_hip = ""
    if KFD.exists():
        found = rocm.find(base)
        if found:
            return "hip", f"there is an AMD GPU, and HIP in {found[0].path}"
        without_hip = ", which needs a HIP library (libamdhip64) that was not found: install ROCm"
    if cuda.present(base):
        return "cuda", "there is an NVIDIA GPU and no AMD GPU"
    amd = f"no AMD GPU (there is no {KFD})" if not without_hip else f"an AMD GPU{without_hip}"
    try:
        softgpu.environment(base)
    except softgpu.SoftGpuUnavailable as error:
        raise Problem(
            f"there is no GPU that a program could run on: {amd}, no NVIDIA GPU with its driver, "
            f"and no software GPU: {error}"
        ) from None
    return "softgpu", f"there is {amd} and no NVIDIA GPU: kernels are emulated"


def choose(device: str, base: Mapping[str, str]) -> str:
    """The device itself, or the one that `auto` stands for. Raises Problem if that is none."""
    return device if device != "auto" else automatic(base)[0]


def device_environment(device: str, base: Mapping[str, str]) -> dict[str, str]:
    """The whole environment in which programs run on a device that `choose` has returned."""
    if device == "softgpu":
        try:
            return softgpu.environment(base)
        except softgpu.SoftGpuUnavailable as error:
            raise Problem(f"no software GPU: {error}") from None
    if device == "cuda":
        try:
            return cuda.environment(base)
        except cuda.CudaUnavailable as error:
            raise Problem(f"no NVIDIA GPUs: {error}") from None
    return dict(base)


# ---- the library ----


def runtime() -> str:
    """The path of the library, fit for LD_PRELOAD."""
    try:
        path = library_path()
    except FileNotFoundError as error:
        raise Problem(str(error)) from None
    if ":" in path or ";" in path:
        raise Problem(
            f"the loader cannot be told '{path}': install mgpu_rt in a path without ':' and ';'"
        )
    return path


def with_library(base: Mapping[str, str]) -> dict[str, str]:
    """Puts the library before whatever else is preloaded.

    Its directory ends LD_LIBRARY_PATH: a program that was linked with LLVM's own library asks for
    that by its version's name, and starts only if the name can be found. A path with a space, which
    ends a name in LD_PRELOAD, begins it instead, and LD_PRELOAD names the file alone.
    """
    library = runtime()
    here, name = os.path.split(library)
    if " " in library:
        library = name
    preloaded = [path for path in base.get("LD_PRELOAD", "").replace(":", " ").split(" ") if path]
    search = [path for path in base.get("LD_LIBRARY_PATH", "").split(":") if path and path != here]
    search = [here, *search] if " " in here else [*search, here]
    return {
        **base,
        "LD_PRELOAD": ":".join([library, *(path for path in preloaded if path != library)]),
        "LD_LIBRARY_PATH": ":".join(search),
        STARTED_BY: sys.executable,
    }


def environment(device: str, base: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment of a program that runs on `device`. Raises Problem."""
    return with_library(device_environment(choose(device, base), base))


# ---- the program ----


def find(program: str, base: Mapping[str, str] = os.environ) -> str:
    """The file that a shell would run. Raises Problem with a shell's exit status."""
    search = base.get("PATH", os.defpath)
    if found := shutil.which(program, path=search):
        return found
    # Without the right to execute: what a shell then calls status 126.
    candidate = shutil.which(program, mode=os.F_OK, path=search)
    if candidate is None and os.path.isdir(program) and "/" in program:
        raise Problem(f"'{program}' is a directory: name a program", 126)
    if candidate is None:
        where = "there is no such file" if "/" in program else "it is not in PATH"
        raise Problem(f"'{program}' was not found: {where}", 127)
    raise Problem(f"'{candidate}' is not executable: chmod +x '{candidate}'", 126)


def _is_static(head: bytes) -> bool:
    """True if these first bytes of a 64-bit ELF file name no loader, as a static program's do."""
    offset, size, count = struct.unpack_from("<Q14xHH", head, 32)
    if size == 0 or offset + size * count > len(head):
        return False  # damaged, or unusual: the kernel decides
    headers = range(offset, offset + size * count, size)
    return all(struct.unpack_from("<I", head, at)[0] != PT_INTERP for at in headers)


def _gains_rights(program: str, mode: os.stat_result) -> bool:
    """True if the loader will distrust the environment of this program."""
    if mode.st_mode & stat.S_ISUID and mode.st_uid != os.getuid():
        return True
    if mode.st_mode & stat.S_ISGID and mode.st_gid != os.getgid():
        return True
    try:
        return os.getuid() != 0 and "security.capability" in os.listxattr(program)
    except OSError:
        return False  # a file system without such attributes


def obstacle(program: str) -> str | None:
    """Why LD_PRELOAD has no effect on a program and what to do about it; None if it has."""
    try:
        with open(program, "rb") as file:
            head = file.read(4096)
            mode = os.fstat(file.fileno())
    except OSError:
        return None  # executable but not readable: nothing to tell
    if head[:4] != b"\x7fELF" or len(head) < ELF_HEADER:
        return None
    if head[4] != ELFCLASS64:
        return "it is a 32-bit program: build it for 64 bits"
    if _is_static(head):
        return (
            "it is statically linked: link it dynamically, with -L$(mgpu-rt path) "
            "-lmlir_rocm_runtime -Wl,-rpath,$(mgpu-rt path)"
        )
    if _gains_rights(program, mode):
        return "it is setuid, setgid or has capabilities: run a copy that has none"
    return None


def execute(program: str, arguments: list[str], environ: Mapping[str, str]) -> NoReturn:
    """Becomes the program: its process id, signals and exit status are this process's own."""
    path = find(program, environ)
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by Python, and exec would keep that
        signal.signal(ignored, signal.SIG_DFL)
    try:
        os.execve(path, [program, *arguments], environ)
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno == errno.ENOENT:
            reason = "the interpreter or loader that it names is missing"
        elif error.errno == errno.ENOEXEC:
            reason += " (neither a program for this machine nor a script with a #! line)"
        raise Problem(f"'{path}' cannot be executed: {reason}", 126) from None
