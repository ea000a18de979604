"""Helpers of the tests of installations. The functions copy sources, find Pythons, make
environments, and check every installation."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from tests.support import lower
from tests.support.child import ROOT
from tests.support.patience import run_process
from tests.support.sources import SOURCES

EXAMPLE = ROOT / "examples" / "c"
LAUNCHES = 100

#: Variables that would make an installation use this checkout, or other files.
UNWANTED = ("MGPU_RT_", "HIPSTUB_", "PYTHON", "LD_", "VIRTUAL_ENV", "CONDA", "MAKE", "MFLAGS")


def environment(**changes: str) -> dict[str, str]:
    """Returns a user's environment, without any setting of this checkout or of the tests."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(UNWANTED)}
    return {**clean, **changes}


def run(*words: object, cwd: Path | None = None, **changes: str) -> str:
    """Runs a command and returns its stdout. If the command fails, the test fails with all of the
    command's output."""
    result = attempt(*words, cwd=cwd, **changes)
    said = f"{result.stdout[-4000:]}\n{result.stderr[-4000:]}"
    assert result.returncode == 0, f"{words}\n{said}"
    return result.stdout


def attempt(
    *words: object, cwd: Path | None = None, **changes: str
) -> subprocess.CompletedProcess[str]:
    """Runs a command that may fail."""
    return run_process(
        [str(word) for word in words],
        environment(**changes),
        cwd=cwd or "/",
        stdin=subprocess.DEVNULL,
    )


def open_folder() -> Path:
    """Makes a new folder that every user may read."""
    folder = Path(tempfile.mkdtemp(prefix="mgpu_rt-install-"))
    folder.chmod(0o755)
    return folder


def copy_sources(to: Path) -> Path:
    """Copies the files that git tracks, and untracked files that git does not ignore."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        source, target = ROOT / name, to / name
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    return to


def build(tree: Path, out: Path, kind: str, *options: str, **changes: str) -> Path:
    """Builds a wheel or an sdist of the sources in `tree`, as pip does."""
    settings = f"{{'--build-option': {list(options)!r}}}"
    code = (
        f"from setuptools import build_meta as b; print(b.build_{kind}({str(out)!r}, {settings}))"
    )
    out.mkdir(parents=True, exist_ok=True)
    return out / run(sys.executable, "-c", code, cwd=tree, **changes).splitlines()[-1]


VERSIONS = tuple(f"3.{minor}" for minor in range(10, 16))


@functools.cache
def interpreters() -> dict[str, Path]:
    """Returns the Pythons of this machine by their version ("3.12"), one for each version."""
    names = [f"python{version}" for version in VERSIONS]
    candidates = [Path(sys.base_prefix, "bin", f"python3.{sys.version_info[1]}")]
    candidates += [Path(path) for path in map(shutil.which, names) if path]
    candidates += sorted(Path.home().glob(".pyenv/versions/3.*/bin/python3"))
    found: dict[str, Path] = {}
    for candidate in candidates:
        code = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
        try:
            version = subprocess.run([candidate, "-c", code], capture_output=True, text=True).stdout
        except OSError:
            continue
        if version.strip() and tuple(map(int, version.split("."))) >= (3, 10):
            found.setdefault(version.strip(), candidate)
    return found


def forum() -> Path:
    """Returns the object file of the program forum, lowered by LLVM 22."""
    return lower.lower(SOURCES["forum"], llvm=22, iterations=LAUNCHES)


@dataclass(frozen=True)
class Installed:
    """An installation: its command, and a Python that can import the package."""

    command: Path
    python: Path

    def ask(self, *words: object, **changes: str) -> str:
        """Returns the output of the command."""
        return run(self.command, *words, **changes)

    def doctor(self, *words: object, **changes: str) -> dict:
        """Returns the JSON report of `mgpu-rt doctor`."""
        return json.loads(attempt(self.command, "doctor", "--json", *words, **changes).stdout)


def install(
    interpreter: Path, folder: Path, *what: object, options: tuple[str, ...] = ()
) -> Installed:
    """Creates a new environment in `folder` and installs `what` by pip."""
    run(interpreter, "-m", "venv", folder)
    python = folder / "bin" / "python"
    run(python, "-m", "pip", "install", "--disable-pip-version-check", *options, *what)
    return Installed(folder / "bin" / "mgpu-rt", python)


def unpack(wheel: Path, folder: Path) -> Path:
    """Unpacks a wheel's files, without installing them."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    for program in (folder / "mgpu_rt" / "lib").iterdir():
        program.chmod(0o755)
    return folder


# ---- what every installation must do ----


def check(installed: Installed, work: Path, python: str | None = None) -> None:
    """Runs everything that a user would: doctor, the forum's program in three ways, the package."""
    work.mkdir(parents=True, exist_ok=True)
    _check_doctor(installed, python)
    libs, cflags = installed.ask("config", "--libs"), installed.ask("config", "--cflags")
    program = work / "by hand"
    run("sh", "-c", f'cc "$0" {libs.strip()} -o "$1"', forum(), program)
    _check_forum(installed, program, work)
    _check_cmake(installed, work)
    if shutil.which("pkg-config"):
        _check_pkg_config(installed, work)
    version = run("sh", "-c", f'cc "$0" {cflags.strip()} {libs.strip()} -o "$1" && "$1"',
                  EXAMPLE / "version.c", work / "version")  # fmt: skip
    assert version.split()[1] == installed.ask("--version").split()[-1]


def _check_doctor(installed: Installed, python: str | None) -> None:
    report = installed.doctor("--device", "softgpu")
    assert report["possible"], report
    assert [check for check in report["checks"] if check["state"] in ("failure", "warning")] == []
    assert python is None or report["python"].startswith(python), report


def _check_forum(installed: Installed, program: Path, work: Path) -> None:
    """Checks that the program launches on the emulated GPU, and hits the caches."""
    stats = work / "stats.json"
    words = ("run", "--device", "softgpu", "--stats-json", stats, "--", program)
    result = attempt(installed.command, *words)
    # The lowered main returns no status, so the test accepts every status that a signal did not
    # cause.
    assert (result.returncode >= 0, result.stderr) == (True, ""), result.stderr
    counted = json.loads(stats.read_text())
    assert counted["abi"]["mgpuLaunchKernel"]["calls"] == LAUNCHES
    assert counted["hip"]["hipStreamCreate"]["calls"] == 1


def _check_cmake(installed: Installed, work: Path) -> None:
    folder = installed.ask("config", "--cmakedir").strip()
    out = work / "cmake"
    run("cmake", "-S", EXAMPLE, "-B", out, f"-Dmgpu_rt_DIR={folder}", f"-DOBJECT={forum()}")
    run("cmake", "--build", out, "--target", "version", "program")
    assert run(out / "version").startswith("mgpu_rt ")
    _check_forum(installed, out / "program", work)


def _check_pkg_config(installed: Installed, work: Path) -> None:
    """Checks pkg-config's output, in which paths with a space are quoted for a shell."""
    folder = Path(installed.ask("config", "--path").strip()) / "pkgconfig"
    script = 'eval cc "\\"$0\\"" $(pkg-config --cflags --libs mgpu_rt) -o "\\"$1\\"" && "$1"'
    out = run("sh", "-c", script, EXAMPLE / "version.c", work / "pkg", PKG_CONFIG_PATH=str(folder))
    assert out == f"mgpu_rt {installed.ask('--version').split()[-1]}\n"
