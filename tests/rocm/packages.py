"""Fetches a release's packages once and unpacks them, without root and without installing them.

apt-get resolves and verifies as it does for the machine, with a configuration of its own. It has an
empty list of installed packages, the machine's keys, and a source for each suite. The address is
that of the machine's own source for Debian.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from tests.rocm.releases import Release
from tests.support.folders import locked

ROOT = Path(__file__).resolve().parents[2]
_SOURCES = Path("/etc/apt")
_LIBRARIES = Path("usr/lib/x86_64-linux-gnu")
_LOADER = "ld-linux-x86-64.so.2"
TIME_LIMIT = 600  # seconds for one release; a minute is common


class PackagesMissing(RuntimeError):
    """A release cannot be had here; the message says why."""


def cache() -> Path:
    """The folder of the releases: MGPU_RT_ROCM_CACHE, by default build/rocm."""
    named = os.environ.get("MGPU_RT_ROCM_CACHE")
    return Path(named) if named else ROOT / "build" / "rocm"


def loader(root: Path) -> Path:
    """The dynamic loader of an unpacked release."""
    return root / _LIBRARIES / _LOADER


def libraries(root: Path) -> list[Path]:
    """The folder in which an unpacked release keeps its libraries."""
    return [root / _LIBRARIES, root / "usr/lib/llvm-22/lib", root / "usr/lib/llvm-17/lib"]


def fetched(release: Release) -> Path | None:
    """The unpacked release, if it is there."""
    root = cache() / release.name
    return root if (root / ".complete").exists() else None


def fetch(release: Release) -> Path:
    """The unpacked release; fetched, if it is not there. Raises PackagesMissing."""
    with locked(cache() / release.name):
        return fetched(release) or _fetch(release)


def _fetch(release: Release) -> Path:
    for tool in ("apt-get", "dpkg-deb"):
        if not shutil.which(tool):
            raise PackagesMissing(f"HIP {release.hip} comes as Debian packages; {tool} is missing")
    work = cache() / f"{release.name}.apt"
    configuration = _configure(work, release)
    _apt(configuration, "update", "-qq")
    _apt(configuration, "install", "-qq", "-y", "--download-only", *release.packages)
    root = cache() / f"{release.name}.new"
    shutil.rmtree(root, ignore_errors=True)
    for package in sorted((work / "cache/archives").glob("*.deb")):
        subprocess.run(["dpkg-deb", "-x", package, root], check=True, timeout=TIME_LIMIT)
    _point_home(root)
    (root / ".complete").touch()
    root.rename(cache() / release.name)
    shutil.rmtree(work)
    return cache() / release.name


def fetch_sparse(release: Release) -> None:
    """Puts hipSPARSE beside the release's HIP, where it is looked for first. Raises
    PackagesMissing."""
    beside = fetch(release) / _LIBRARIES
    folder = cache() / f"sparse-{release.hip}"
    fetch_only(release, release.sparse, folder)
    for library in (folder / _LIBRARIES).iterdir():
        link = beside / library.name
        if not link.is_symlink():
            link.symlink_to(library)


def fetch_only(release: Release, names: tuple[str, ...], root: Path) -> None:
    """Unpacks packages of a release's suites, without what they depend on, into a folder.

    Does nothing if that is there.
    """
    with locked(root):
        if not root.exists():
            _fetch_only(release, names, root)


def _fetch_only(release: Release, names: tuple[str, ...], root: Path) -> None:
    fresh = root.with_name(f"{root.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    work = root.with_name(f"{root.name}.apt")
    configuration = _configure(work, release, names)
    archives = work / "cache/archives"
    _apt(configuration, "update", "-qq")
    _apt(configuration, "download", "-qq", *names, folder=archives)
    for package in sorted(archives.glob("*.deb")):
        subprocess.run(["dpkg-deb", "-x", package, fresh], check=True, timeout=TIME_LIMIT)
    fresh.rename(root)
    shutil.rmtree(work)


def _mirror() -> str:
    """The address that the machine itself has Debian from."""
    files = [_SOURCES / "sources.list", *sorted((_SOURCES / "sources.list.d").glob("*"))]
    for file in files:
        if file.suffix not in (".list", ".sources") or not file.exists():
            continue
        for line in file.read_text().splitlines():
            found = re.match(r"(?:URIs:|deb\s+(?:\[[^]]*\])?)\s*(\S+/debian/?)(?:\s|$)", line)
            if found:
                return found[1]
    raise PackagesMissing(f"{_SOURCES} names no source of Debian packages")


def _configure(work: Path, release: Release, newest: tuple[str, ...] = ()) -> Path:
    """A configuration of apt's that does not touch the machine's own."""
    for folder in ("state/lists/partial", "cache/archives/partial"):
        (work / folder).mkdir(parents=True, exist_ok=True)
    (work / "status").touch()
    mirror = _mirror()
    (work / "sources.list").write_text(
        "".join(f"deb {mirror} {suite} main\n" for suite in release.suites)
    )
    (work / "preferences").write_text(
        "\n".join(
            f"Package: {package}\nPin: release a={release.suites[-1]}\nPin-Priority: 600\n"
            for package in (*release.newest, *newest)
        )
    )
    configuration = work / "apt.conf"
    settings = {
        "Dir::State": work / "state",
        "Dir::State::status": work / "status",
        "Dir::Cache": work / "cache",
        "Dir::Etc::sourcelist": work / "sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::Etc::preferences": work / "preferences",
        "Dir::Etc::preferencesparts": "/dev/null",
        "Dir::Etc::trustedparts": _SOURCES / "trusted.gpg.d",
        "APT::Architecture": "amd64",
        "APT::Install-Recommends": "false",
        "APT::Sandbox::User": "",  # what runs here may write into the cache
        "Acquire::Languages": "none",
        "Acquire::http::Timeout": "20",  # seconds, so that a machine without network soon says so
        "Acquire::Retries": "1",
        "Acquire::Check-Valid-Until": "false",  # unstable suites move on before their time is up
        "Debug::NoLocking": "true",
        "DPkg::Post-Invoke": "",
    }
    configuration.write_text("".join(f'{name} "{value}";\n' for name, value in settings.items()))
    return configuration


def _apt(configuration: Path, *arguments: str, folder: Path | None = None) -> None:
    try:
        done = subprocess.run(
            ["apt-get", *arguments],
            env={**os.environ, "APT_CONFIG": str(configuration)},
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT,
        )
    except subprocess.TimeoutExpired:
        raise PackagesMissing(f"apt-get {arguments[0]} took more than {TIME_LIMIT} s") from None
    if done.returncode:
        words = [line for line in done.stderr.splitlines() if line.startswith("E:")]
        raise PackagesMissing(f"apt-get {arguments[0]}: {' '.join(words) or done.stderr.strip()}")


def _point_home(root: Path) -> None:
    """Absolute links within a package mean the release's own files, not the machine's."""
    for path in root.rglob("*"):
        if path.is_symlink() and os.readlink(path).startswith("/"):
            target = root / os.readlink(path).lstrip("/")
            path.unlink()
            path.symlink_to(os.path.relpath(target, path.parent))
