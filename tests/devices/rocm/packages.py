"""Downloads the packages of a release into a cache, once."""

from __future__ import annotations

import os
from pathlib import Path

from tests.devices.rocm import debian
from tests.devices.rocm.debian import PackagesMissing
from tests.devices.rocm.releases import Release
from tests.support.folders import locked

__all__ = ["PackagesMissing"]

ROOT = Path(__file__).resolve().parents[3]
_LIBRARIES = Path("usr/lib/x86_64-linux-gnu")
_LOADER = "ld-linux-x86-64.so.2"


def cache() -> Path:
    """Returns the folder of the releases: MGPU_RT_ROCM_CACHE, by default build/rocm."""
    named = os.environ.get("MGPU_RT_ROCM_CACHE")
    return Path(named) if named else ROOT / "build" / "rocm"


def loader(root: Path) -> Path:
    """Returns the dynamic loader of an unpacked release."""
    return root / _LIBRARIES / _LOADER


def libraries(root: Path) -> list[Path]:
    """Returns the folders of libraries in an unpacked release."""
    return [root / _LIBRARIES, root / "usr/lib/llvm-22/lib", root / "usr/lib/llvm-17/lib"]


def fetched(release: Release) -> Path | None:
    """Returns the folder of an unpacked release, or None if the folder does not exist."""
    root = cache() / release.name
    return root if root.exists() else None


def fetch(release: Release) -> Path:
    """Returns the folder of an unpacked release; downloads a missing release. Raises
    PackagesMissing."""
    root = cache() / release.name
    with locked(root):
        if not root.exists():
            release.unpack(root)
    return root


def fetch_sparse(release: Release) -> None:
    """Links hipSPARSE into the folder of the release's HIP, because the loader searches this folder
    first. Raises PackagesMissing."""
    beside = fetch(release) / _LIBRARIES
    folder = cache() / f"sparse-{release.hip}"
    fetch_only(release, release.sparse, folder)
    for library in (folder / _LIBRARIES).iterdir():
        link = beside / library.name
        if not link.is_symlink():
            link.symlink_to(library)


def fetch_only(release: Release, names: tuple[str, ...], root: Path) -> None:
    """Unpacks packages from a release's Debian suites, without their dependencies, into a folder.

    Does nothing if the folder exists.
    """
    with locked(root):
        if not root.exists():
            newest = (*release.newest, *names)
            debian.unpack(names, root, suites=release.suites, newest=newest, dependencies=False)
