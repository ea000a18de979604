"""Finds and runs the tools of an LLVM release, and tells how to install missing tools."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from mgpu_rt._packages import how_to_install

#: The releases that have pipelines, newest first.
RELEASES = (23, 22, 21, 20, 19)

#: The releases that the tests use, because Debian 12 has packages of these releases.
TESTED = (22, 19)

#: Names the source of packages that apt-get does not find.
ARCHIVE = "https://apt.llvm.org has releases that Debian lacks"

#: The name and the release of one of LLVM's tools.
Tool = tuple[str, int]

#: The folders in which Debian and ROCm install AMD's device libraries.
DEVICE_LIBRARIES = (Path("/usr/lib/x86_64-linux-gnu/amdgcn"), Path("/opt/rocm/amdgcn"))

#: For an unknown chip LLVM prints a warning, and then crashes or writes an image that no GPU
#: accepts. For a name that denotes no chip, MLIR ends with an error.
_UNKNOWN_CHIP = ("is not a recognized processor", "Invalid chipset name")

_VERSION = re.compile(r"\b(?:LLVM version|LLD) (\d+)\.")


class ToolchainMissing(RuntimeError):
    """Raised if a tool is not installed. ``tool`` is the tool's name, and ``package`` is the tool's
    package in Debian."""

    def __init__(self, tool: str, package: str, otherwise: str = "put it in PATH") -> None:
        super().__init__(f"{tool} is missing: {how_to_install(package)}, or {otherwise}")
        self.tool = tool
        self.package = package


class LoweringFailed(RuntimeError):
    """Raised if a tool refuses a program. ``complaint`` is the tool's own message; ``reads_source``
    is True if the tool reads the program itself, and not another tool's output."""

    reads_source = False

    def __init__(self, command: Sequence[str], status: int, complaint: str) -> None:
        super().__init__(f"exit {status} from: {' '.join(command)}\n{complaint}")
        self.command = command
        self.status = status
        self.complaint = complaint

    def with_message(self, *lines: str) -> LoweringFailed:
        """Returns a copy of this error with these lines in place of the tool's message."""
        return LoweringFailed(self.command, self.status, "\n".join(filter(None, lines)))


def is_unknown_chip(failed: LoweringFailed) -> bool:
    """Returns True if a tool refused the name of the GPU."""
    return any(words in failed.complaint for words in _UNKNOWN_CHIP)


def tool(name: str, llvm: int) -> Path:
    """Returns the path of one tool of one LLVM release, e.g. ``tool("mlir-opt", 22)``.

    Raises ToolchainMissing. The release's own directory comes first, because PATH may contain
    another build of the tool. A tool without a release number in its name is used if the tool
    reports the wanted release.
    """
    own = Path(f"/usr/lib/llvm-{llvm}/bin/{name}")
    if own.exists():
        return own
    if found := shutil.which(f"{name}-{llvm}"):
        return Path(found)
    if (found := shutil.which(name)) and _release(found) == llvm:
        return Path(found)
    raise ToolchainMissing(f"{name}-{llvm}", _package(name, llvm), f"put it in PATH; {ARCHIVE}")


def _release(path: str) -> int | None:
    """Returns the LLVM release that a tool reports."""
    try:
        said = run([path, "--version"]).decode(errors="replace")
    except LoweringFailed:
        return None
    match = _VERSION.search(said)
    return int(match[1]) if match else None


def _package(name: str, llvm: int) -> str:
    if name.startswith("mlir-"):
        return f"mlir-{llvm}-tools"
    return f"lld-{llvm}" if name == "ld.lld" else f"llvm-{llvm}"


def library(name: str, llvm: int) -> Path | None:
    """Returns a shared library such as mlir_c_runner_utils, if possible from the named release. A
    library from any release will do, because the library's functions are the same in all releases.
    Returns None if no release provides the library."""
    for release in (llvm, *RELEASES):
        try:
            folder = tool("mlir-opt", release).resolve().parent.parent / "lib"
        except ToolchainMissing:
            continue
        if found := sorted(folder.glob(f"lib{name}.so*")):
            return found[0]
    return None


#: The libraries of LLVM whose functions lowered programs call.
SUPPORT = (
    *("mlir_c_runner_utils", "mlir_runner_utils", "mlir_async_runtime", "mlir_float16_utils"),
    *("mlir_apfloat_wrappers", "mlir_arm_runner_utils"),
)


def missing(tools: Iterable[Tool]) -> list[ToolchainMissing]:
    """Returns the given tools that are missing."""
    absent = []
    for name, llvm in tools:
        try:
            tool(name, llvm)
        except ToolchainMissing as lacking:
            absent.append(lacking)
    return absent


def other(name: str, package: str) -> Path:
    """Returns a tool that does not belong to LLVM. Raises ToolchainMissing."""
    if found := shutil.which(name):
        return Path(found)
    raise ToolchainMissing(name, package)


def compiler() -> Path:
    """Returns the C compiler, which also runs the linker. Raises ToolchainMissing."""
    return other("cc", "gcc libc6-dev")


def device_libraries() -> Path:
    """Returns the directory amdgcn of AMD's device libraries. Raises ToolchainMissing."""
    for directory in DEVICE_LIBRARIES:
        if directory.exists():
            return directory
    first, *others = DEVICE_LIBRARIES
    otherwise = f"install ROCm, which has them in {others[0]}"
    raise ToolchainMissing(str(first), "rocm-device-libs", otherwise)


def run(
    command: Sequence[Path | str],
    stdin: bytes = b"",
    env: dict[str, str] | None = None,
    folder: str | None = None,
) -> bytes:
    """Runs a tool in a given folder, or in the current folder, and returns the tool's standard
    output. Raises LoweringFailed."""
    arguments = [str(word) for word in command]
    try:
        done = subprocess.run(arguments, input=stdin, capture_output=True, env=env, cwd=folder)
    except OSError as error:
        raise LoweringFailed(
            arguments, 126, f"{arguments[0]} cannot be run: {error.strerror}"
        ) from None
    complaint = done.stderr.decode(errors="replace").strip()
    if done.returncode != 0:
        raise LoweringFailed(arguments, done.returncode, complaint)
    if _UNKNOWN_CHIP[0] in complaint:
        raise LoweringFailed(arguments, done.returncode, complaint.splitlines()[0])
    return done.stdout
