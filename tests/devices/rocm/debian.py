"""Downloads Debian's packages and unpacks them into a folder, without root and without installing
them.

apt-get resolves and verifies the packages as for an installation, but reads a separate
configuration. This configuration has an empty list of installed packages, the machine's keys, and a
source for each suite. Each source has the address from which the machine itself downloads Debian
packages. apt-get therefore checks every package against a list that Debian has signed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

_SOURCES = Path("/etc/apt")
_KEY = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
TIME_LIMIT = 600  # seconds for one call of apt-get; a minute is common


class PackagesMissing(RuntimeError):
    """Packages cannot be downloaded here; the message gives the reason."""


def unpack(
    packages: Sequence[str],
    root: Path,
    *,
    suites: Sequence[str],
    newest: Sequence[str] = (),
    dependencies: bool = True,
) -> None:
    """Unpacks packages from the given Debian suites into a new folder. The first suite has
    precedence.

    ``newest`` names packages that come from the last suite, even if an earlier suite has these
    packages. The packages' dependencies are unpacked too, unless ``dependencies`` is false. The
    folder appears completely or not at all. Raises PackagesMissing.
    """
    for tool in ("apt-get", "dpkg-deb"):
        if not shutil.which(tool):
            raise PackagesMissing(f"Debian packages are needed, but {tool} is missing")
    root.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root.parent, prefix=f"{root.name}.") as scratch:
        work, fresh = Path(scratch, "apt"), Path(scratch, "root")
        configuration = _configure(work, suites, newest)
        archives = work / "cache/archives"
        _apt(configuration, "update", "-qq")
        if dependencies:
            _apt(configuration, "install", "-qq", "-y", "--download-only", *packages)
        else:
            _apt(configuration, "download", "-qq", *packages, folder=archives)
        for package in sorted(archives.glob("*.deb")):
            _run(["dpkg-deb", "-x", str(package), str(fresh)])
        _point_home(fresh)
        fresh.rename(root)


def _mirror() -> str:
    """Returns the address from which the machine downloads Debian packages."""
    files = [_SOURCES / "sources.list", *sorted((_SOURCES / "sources.list.d").glob("*"))]
    for file in files:
        if file.suffix not in (".list", ".sources") or not file.exists():
            continue
        for line in file.read_text().splitlines():
            found = re.match(r"(?:URIs:|deb\s+(?:\[[^]]*\])?)\s*(\S+/debian/?)(?:\s|$)", line)
            if found:
                return found[1]
    raise PackagesMissing(f"{_SOURCES} names no source of Debian packages")


def _configure(work: Path, suites: Sequence[str], newest: Sequence[str]) -> Path:
    """Writes a separate configuration for apt; the machine's configuration is unchanged."""
    for folder in ("state/lists/partial", "cache/archives/partial"):
        (work / folder).mkdir(parents=True, exist_ok=True)
    (work / "status").touch()
    mirror = _mirror()
    key = f"[signed-by={_KEY}] " if _KEY.exists() else ""  # without it, one of trusted.gpg.d
    (work / "sources.list").write_text(
        "".join(f"deb {key}{mirror} {suite} main\n" for suite in suites)
    )
    (work / "preferences").write_text(
        "\n".join(
            f"Package: {package}\nPin: release a={suites[-1]}\nPin-Priority: 600\n"
            for package in newest
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
        "APT::Update::Error-Mode": "any",
        "APT::Install-Recommends": "false",
        "APT::Sandbox::User": "",  # this process's user may write into the cache
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
    _run(["apt-get", *arguments], {**os.environ, "APT_CONFIG": str(configuration)}, folder)


def _run(
    command: list[str], environment: Mapping[str, str] | None = None, folder: Path | None = None
) -> None:
    called = " ".join(command[:2])
    try:
        done = subprocess.run(
            command, env=environment, cwd=folder, capture_output=True, text=True, timeout=TIME_LIMIT
        )
    except subprocess.TimeoutExpired:
        raise PackagesMissing(f"{called} took more than {TIME_LIMIT} s") from None
    if done.returncode:
        raise PackagesMissing(f"{called}: {_reason(done.stderr)}")


def _reason(said: str) -> str:
    """Returns the line with the error's reason, from the output of apt-get or tar."""
    if "No space left on device" in said or "enough free space" in said:
        return "no space is left on the disk"
    lines = said.strip().splitlines() or ["it printed nothing"]
    return next((line for line in lines if line.startswith("E:")), lines[-1])


def _point_home(root: Path) -> None:
    """Changes absolute links in the unpacked packages, so that the links point to unpacked files
    instead of the machine's files."""
    for path in root.rglob("*"):
        if path.is_symlink() and os.readlink(path).startswith("/"):
            target = root / os.readlink(path).lstrip("/")
            path.unlink()
            path.symlink_to(os.path.relpath(target, path.parent))
