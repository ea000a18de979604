"""Installs releases of AMD's HIP from Debian's packages, for the emulated GPU: `mgpu-rt doctor
--install`.

The releases are installed in the user's folder. The libraries of a release come from Debian's
packages. If this machine's C library is older than Debian's, `older_libc` adapts the libraries.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mgpu_rt import _debian, _home, _older_libc

#: The folder of libraries in Debian's packages.
_LIBRARIES = Path("usr/lib/x86_64-linux-gnu")


@dataclass(frozen=True)
class Release:
    """One release: its version, and its packages."""

    hip: str  # the version in Debian's notation
    library: str  # the name by which programs load it
    suites: tuple[str, ...]  # Debian's suites, the first one preferred
    packages: tuple[str, ...]
    newest: tuple[str, ...] = ()  # packages that come from the last suite nevertheless

    @property
    def name(self) -> str:
        """Returns the name of the release's folder."""
        return f"hip-{self.hip}"

    def unpack(self, root: Path) -> None:
        """Fetches the release's packages and unpacks them into a new folder. Raises
        PackagesMissing."""
        _debian.unpack(self.packages, root, suites=self.suites, newest=self.newest)


_ROCR7 = ("libhsa-runtime64-1", "libamd-comgr3")
_NEWEST = ("sid", "experimental")

RELEASES = (
    Release("5.7.1", "libamdhip64.so.5", ("trixie",), ("libamdhip64-5",)),
    Release("6.4.3", "libamdhip64.so.6", _NEWEST, ("libamdhip64-6",), _ROCR7),
    Release("7.2.4", "libamdhip64.so.7", _NEWEST, ("libamdhip64-7",), ("libamdhip64-7", *_ROCR7)),
)


def find(version: str) -> Release:
    """Returns the release for a version, such as 7.2 or 7.2.4. Raises KeyError."""
    for release in RELEASES:
        if f"{release.hip}.".startswith(f"{version}."):
            return release
    raise KeyError(version)


def installed() -> Iterator[Path]:
    """Yields the HIP libraries of the installed releases, the newest first. Yields nothing if this
    process cannot enter the user's folder."""
    place = _home.data()
    for release in reversed(RELEASES) if place else ():
        library = place / release.name / release.library
        if os.path.exists(library):  # unlike Path.exists, raises no PermissionError
            yield library


def install(release: Release) -> Path:
    """Fetches a release and installs it; returns its HIP library. Does nothing if the release is
    installed.

    The installed folder appears completely or not at all. Raises PackagesMissing, LibraryTooOld or
    OSError.
    """
    folder = _home.make(_home.data())
    place = folder / release.name
    with _one_process(folder) as is_one:
        for left in folder.glob(f"{release.name}.*") if is_one else ():  # by one that was killed
            shutil.rmtree(left, ignore_errors=True)
        if not place.exists():
            with tempfile.TemporaryDirectory(dir=folder, prefix=f"{release.name}.") as scratch:
                release.unpack(Path(scratch, "root"))
                lay_out(Path(scratch, "root"), Path(scratch, "fresh"))
                try:
                    Path(scratch, "fresh").rename(place)
                except OSError:
                    if not place.exists():  # if the folder exists, another process was faster
                        raise
    return place / release.library


@contextlib.contextmanager
def _one_process(place: Path) -> Iterator[bool]:
    """Waits until no other process is installing the release. The kernel releases the lock when the
    process ends. Yields False if the file system, such as NFS, does not support the lock."""
    opened = os.open(place, os.O_RDONLY)
    try:
        is_one = False
        with contextlib.suppress(OSError):
            fcntl.flock(opened, fcntl.LOCK_EX)
            is_one = True
        yield is_one
    finally:
        os.close(opened)


def lay_out(root: Path, place: Path) -> None:
    """Moves the libraries of an unpacked release into a new folder, and adapts them to this
    machine.

    The packages' C library is left out, because a process has one C library. Raises LibraryTooOld.
    """
    place.mkdir()
    for library in sorted((root / _LIBRARIES).glob("*.so*")):
        if library.name in _older_libc.ITS_FILES:
            continue
        if library.is_symlink():
            (place / library.name).symlink_to(os.path.basename(os.readlink(library)))
        else:
            shutil.move(library, place / library.name)
            _older_libc.fit(place / library.name)
