"""Helpers for tests of the manager's hosting. This file provides the programs, and the environment
in which the manager starts at once. Other functions check that the manager has started and
ended."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.support.child import BUILD, ROOT, environment, library
from tests.support.folders import folder, locked
from tests.support.images import code_object
from tests.support.patience import HANG, run_process, wait_until

KERNEL = "test_func"
MANAGER = re.compile(r"manager: Python (\S+), process (\d+)")


@functools.cache
def other_python(version: str) -> str | None:
    """Returns an interpreter of a version ("3.14t": without the GIL); None if it is not
    installed."""
    versions = Path.home() / ".pyenv" / "versions"
    found = sorted(versions.glob(f"{version}.*/bin/python")) if version[-1] != "t" else []
    uv = Path.home() / ".local" / "share" / "uv" / "python"
    suffix = "+freethreaded" if version[-1] == "t" else ""
    found += sorted(uv.glob(f"cpython-{version.rstrip('t')}.*{suffix}-*/bin/python{version}"))
    for name in (f"python{version}", *map(str, found)):
        probe = [name, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        try:
            answer = subprocess.run(probe, capture_output=True, text=True, timeout=HANG)
        except OSError:
            continue
        if answer.stdout.strip() == version.rstrip("t"):
            return name
    return None


#: The folder of a virtual environment's packages.
PACKAGES = "lib/python*/site-packages"


@functools.cache
def python_with_cffi(version: str) -> str | None:
    """Returns a Python with cffi, in a virtual environment; None if there is no such
    interpreter."""
    interpreter = other_python(version)
    if interpreter is None:
        return None
    venv = BUILD / "tests" / f"python{version}"
    python = venv / "bin" / "python"
    with locked(venv):
        if not next(venv.glob(f"{PACKAGES}/_cffi_backend*"), None):
            # All virtual environments use the pip of the Python that runs the tests, because
            # unpacking a pip takes 4 s.
            empty = [interpreter, "-m", "venv", "--without-pip", str(venv)]
            subprocess.run(empty, check=True, timeout=HANG)
            install = [sys.executable, "-m", "pip", "install", "-q", "--only-binary=:all:"]
            install += ["--python-version", version, "--target", str(next(venv.glob(PACKAGES)))]
            subprocess.run([*install, "cffi==2.1.1"], check=True, timeout=HANG)
    return str(python)


@functools.cache
def bare_python() -> Path:
    """Returns an interpreter without cffi."""
    venv = BUILD / "tests" / "bare"
    with locked(venv):
        if not (venv / "bin" / "python").exists():
            subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    return venv / "bin" / "python"


def promptly(**changes: str) -> dict[str, str]:
    """Returns an environment in which the manager starts at the first call, and the library prints
    the manager's Python version and process id."""
    return environment(**{"MGPU_RT_VERBOSE": "1", "MGPU_RT_MANAGER": "delay=0", **changes})


@functools.cache
def image() -> Path:
    """Returns a file with the forum's kernel."""
    out = folder("hosting") / "forum.hsaco"
    out.write_bytes(code_object("forum"))
    return out


@functools.cache
def host(*flags: str) -> Path:
    """tests/support/hosts/host.c, compiled."""
    out = folder("hosting") / f"host{len(flags) or ''}"
    source = ROOT / "tests" / "support" / "hosts" / "host.c"
    warnings = ["-Wall", "-Wextra", "-Wno-pedantic"]
    words = ["-std=c11", "-D_GNU_SOURCE", f"-DHANG={HANG}", "-O1", *warnings, *flags]
    subprocess.run(["cc", *words, str(source), "-o", str(out), "-pthread", "-ldl"], check=True)
    return out


def host_command(mode: str, runtime: Path | None = None) -> list[str]:
    """Returns the command that runs host.c in a given mode."""
    return [str(host()), str(runtime or library()), str(image()), KERNEL, mode]


def run_host(mode: str, env: dict[str, str], **more: object) -> subprocess.CompletedProcess[str]:
    """Runs host.c in a given mode."""
    return run_process(host_command(mode), env, **more)


def manager_of(said: str) -> tuple[str, int]:
    """Returns the manager's version of Python and the manager's process id, as a program printed
    them."""
    found = MANAGER.search(said)
    assert found, said
    return found[1], int(found[2])


def is_running(process: int) -> bool:
    """Returns whether a process is running; False for a zombie, too."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def ends(process: int) -> bool:
    """Waits for a process to end; returns False if the process does not end."""
    return wait_until(lambda: not is_running(process))


def managers(home: Path = ROOT, programs: set[int] | None = None) -> set[int]:
    """Returns the process ids of a checkout's managers, or only of the managers that serve the
    processes in `programs`."""
    found = set()
    for entry in os.listdir("/proc"):
        if entry.isdigit() and is_running(int(entry)):
            try:
                words = Path("/proc", entry, "cmdline").read_bytes().split(b"\0")  # ends with one
            except OSError:
                continue
            script = str(home / "mgpu_rt" / "manager" / "_manager.py").encode()
            if script in words and (programs is None or int(words[-2]) in programs):
                found.add(int(entry))
    return found


def good(mode: str, **env: str) -> str:
    """Runs the host with a manager that starts at once; the host must print ok. Returns the host's
    stderr."""
    result = run_host(mode, promptly(**env))
    assert result.returncode == 0, result.stdout + result.stderr
    assert "ok" in result.stdout.splitlines()
    return result.stderr


def only_line(said: str) -> str:
    """Returns the single line that gives the reason why there is no manager."""
    lines = [line for line in said.splitlines() if "no Python to manage the caches" in line]
    assert len(lines) == 1, said
    return lines[0]
