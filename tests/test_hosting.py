"""Python in a program that knows nothing of it: every way in, and every way it can be missing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.child import BUILD, ROOT, environment, library
from tests.compiled import compile_c
from tests.images import code_object

KERNEL = "test_func"
OTHER_PYTHONS = ("3.10", "3.11", "3.12", "3.13")


@pytest.fixture(scope="session")
def host() -> Path:
    """tests/hosts/host.c, compiled."""
    out = BUILD / "tests" / "host"
    out.parent.mkdir(parents=True, exist_ok=True)
    source = ROOT / "tests" / "hosts" / "host.c"
    flags = ["-std=c11", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Wno-pedantic"]
    subprocess.run(["cc", *flags, str(source), "-o", str(out), "-pthread", "-ldl"], check=True)
    return out


@pytest.fixture(scope="session")
def image() -> Path:
    out = BUILD / "tests" / "forum.hsaco"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_bytes(code_object("forum"))
    return out


@pytest.fixture
def run(host: Path, image: Path):
    """Runs the host in a mode; returns the finished process. It must say ok."""

    def go(mode: str, *, status: int = 0, **env: str) -> subprocess.CompletedProcess[str]:
        result = subprocess.run(
            [str(host), str(library()), str(image), KERNEL, mode],
            env=environment(MGPU_RT_VERBOSE="1", **env),
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert result.returncode == status, result.stdout + result.stderr
        assert status or "ok" in result.stdout.splitlines()
        return result

    return go


def counts(log: Path) -> dict[str, int]:
    """What the stub was asked for, by function."""
    return json.loads(log.read_text())["counts"]


@pytest.mark.parametrize("mode", ["plain", "local-plain", "thread", "local-thread", "dlclose"])
def test_policy_in_python(run, mode: str) -> None:
    result = run(mode)
    assert "policy in Python (an interpreter of its own)" in result.stderr
    assert "HIP through hip-python" in result.stderr


def test_threads_that_miss_at_once(run, tmp_path: Path) -> None:
    """Nobody waits for Python to start, and all get an answer."""
    run("threads", HIPSTUB_LOG=str(tmp_path / "log"))


@pytest.mark.parametrize("mode", ["fork-before", "fork-after", "fork-busy"])
@pytest.mark.parametrize("python", ["", "off"])
def test_fork(run, mode: str, python: str) -> None:
    """The child gets answers too, whatever other threads were doing; it does not hang.

    The stub is in fast mode: recording takes locks of its own, which a fork leaves locked.
    """
    run(mode, MGPU_RT_PYTHON=python, MGPU_RT_MODULE_LIMIT="4", HIPSTUB_MODE="fast")


def test_host_state_is_left_alone(run) -> None:
    """Signal handlers and locale are the program's."""
    run("state", LC_ALL="C.UTF-8")


def test_empty_path(run) -> None:
    assert "policy in Python" in run("plain", PATH="").stderr


def test_broken_pythonhome(run) -> None:
    """It would end the program if the interpreter read it."""
    env = {"PYTHONHOME": "/nowhere", "PYTHONPATH": "/nowhere", "PYTHONSTARTUP": "/nowhere"}
    assert "policy in Python" in run("plain", **env).stderr


def test_python_off(run) -> None:
    assert "Python" not in run("plain", MGPU_RT_PYTHON="off").stderr


@pytest.mark.parametrize("path", ["/nowhere/python3", "/bin/true", "it's"])
def test_python_that_is_none(run, path: str) -> None:
    """One line says so, and the program goes on with the built-in policy."""
    said = run("plain", MGPU_RT_PYTHON=path).stderr
    lines = [line for line in said.splitlines() if "no Python for the module cache" in line]
    assert len(lines) == 1
    assert path in lines[0]


def test_interpreter_without_cffi(run) -> None:
    """An interpreter that lacks a package is reported, not fatal."""
    bare = "/usr/bin/python3"
    probe = [bare, "-I", "-c", "import _cffi_backend"]
    if not Path(bare).exists() or subprocess.run(probe, capture_output=True).returncode == 0:
        pytest.skip("no interpreter without cffi here")
    assert "no Python for the module cache" in run("plain", MGPU_RT_PYTHON=bare).stderr


@pytest.fixture(scope="session")
def slow_python() -> Path:
    """A program that answers as an interpreter, with tests/hosts/slow_python.c as its libpython."""
    out = BUILD / "tests" / "slow_python"
    out.mkdir(parents=True, exist_ok=True)
    source = (ROOT / "tests" / "hosts" / "slow_python.c").read_text()
    compile_c(out / "libslow.so", source, "-D_GNU_SOURCE", "-shared", "-fPIC")
    answer = f"#!/bin/sh\necho {out}/libslow.so\necho {out}\n"
    (out / "python").write_text(answer)
    (out / "python").chmod(0o755)
    return out / "python"


def test_python_starts_beside_hip(run, slow_python: Path) -> None:
    """In a thread that takes no signals. One after the other, they would wait for each other."""
    said = run("plain", MGPU_RT_PYTHON=str(slow_python)).stderr
    assert "HIP and Python start at once" in said
    assert "the thread takes signals" not in said
    assert said.count("no Python for the module cache (unknown error)") == 1


def test_python_that_never_starts(run, slow_python: Path) -> None:
    """The program goes on after ten seconds."""
    said = run("plain", MGPU_RT_PYTHON=str(slow_python), SLOW_PYTHON="for-ever").stderr
    assert said.count("no Python for the module cache (it has not started within ten seconds)") == 1


def test_without_hip_no_python_is_started(run, slow_python: Path) -> None:
    said = run(
        "plain",
        status=1,
        MGPU_RT_HIP="/nowhere/libamdhip64.so",
        MGPU_RT_PYTHON=str(slow_python),
        SLOW_PYTHON="for-ever",
    ).stderr
    assert "no HIP library" in said
    assert "no Python" not in said


CONSTRUCTOR = """
#include <stddef.h>
#include <stdio.h>
extern void *mgpuModuleLoad(void *image, size_t size);
static const unsigned char image[] = {{{}}};
static __attribute__((constructor)) void load(void) {{
    puts(mgpuModuleLoad((void *)image, 0) ? "loaded" : "not loaded");
}}
"""


def test_first_call_in_a_constructor(image: Path, tmp_path: Path) -> None:
    """In dlopen, with the loader's lock held: what starts Python must not need it."""
    content = ", ".join(map(str, image.read_bytes()))
    flags = ("-shared", "-fPIC", str(library()), f"-Wl,-rpath,{library().parent}")
    plugin = compile_c(tmp_path / "plugin.so", CONSTRUCTOR.format(content), *flags)
    program = compile_c(
        tmp_path / "program",
        "#include <dlfcn.h>\n#include <stdio.h>\n"
        f'int main(void) {{ puts(dlopen("{plugin}", RTLD_NOW) ? "opened" : dlerror()); }}',
        "-ldl",
    )
    done = subprocess.run(
        [str(program)],
        env=environment(MGPU_RT_VERBOSE="1"),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == "loaded\nopened\n"
    assert "policy in Python (an interpreter of its own)" in done.stderr


def test_cache_off_starts_no_python(run) -> None:
    assert "Python" not in run("plain", MGPU_RT_CACHE="off").stderr


def test_library_that_is_never_called(run, tmp_path: Path) -> None:
    """No HIP, no Python, no message."""
    assert run("nothing").stderr == ""


def test_launch_from_an_exit_handler(run) -> None:
    """A handler that runs after the library's own still launches."""
    assert "late ok" in run("late").stdout


def test_exit_gives_back_what_nobody_holds(run, tmp_path: Path) -> None:
    log = tmp_path / "log"
    run("plain", HIPSTUB_LOG=str(log))
    found = counts(log)
    assert found["hipModuleLoadData"] == found["hipModuleUnload"] == 1
    assert found["hipStreamCreate"] == found["hipStreamDestroy"] == 1


@pytest.mark.parametrize("python", ["", "off"])
def test_quiet_teardown(run, python: str) -> None:
    """HIP may not be called once its own exit handlers ran (trap 10)."""
    result = run("plain", HIPSTUB_TEARDOWN="1", MGPU_RT_PYTHON=python)
    assert "teardown" not in result.stderr


def test_hip_is_loaded_once(run, host: Path, image: Path) -> None:
    """hip-python opens no second runtime beside the one that is there."""
    script = (
        "import ctypes, os, sys\n"
        "lib = ctypes.CDLL(sys.argv[1])\n"
        "lib.mgpuStreamCreate()\n"
        "maps = open('/proc/self/maps').read().splitlines()\n"
        "print({m.split()[-1] for m in maps if 'amdhip64' in m})\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script, str(library())],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert len(eval(result.stdout)) == 1, result.stdout + result.stderr


def _other_python(version: str, venv: Path) -> str | None:
    """An interpreter of that version with cffi, in a virtual environment of its own.

    None if this machine has no such interpreter.
    """
    versions = Path.home() / ".pyenv" / "versions"
    names = [f"python{version}", *sorted(versions.glob(f"{version}.*/bin/python3"))]
    for name in map(str, names):
        probe = [name, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        try:
            found = subprocess.run(probe, capture_output=True, text=True, timeout=20)
        except OSError:
            continue
        if found.stdout.strip() == version:
            break
    else:
        return None
    python = venv / "bin" / "python"
    if not python.exists():
        subprocess.run([name, "-m", "venv", str(venv)], check=True, timeout=120)
        install = [str(python), "-m", "pip", "install", "-q", "cffi==2.1.1"]
        subprocess.run(install, check=True, timeout=300, stderr=subprocess.DEVNULL)
    return str(python)


SCRIPT = """
import ctypes, sys
lib = ctypes.CDLL(sys.argv[1])
image = open(sys.argv[2], 'rb').read()
for name in ('mgpuModuleLoad', 'mgpuModuleGetFunction', 'mgpuStreamCreate'):
    getattr(lib, name).restype = ctypes.c_void_p
module = lib.mgpuModuleLoad(image, 0)
function = lib.mgpuModuleGetFunction(ctypes.c_void_p(module), sys.argv[3].encode())
stream = lib.mgpuStreamCreate()
assert module and function and stream
print('ok')
"""


@pytest.mark.parametrize("version", OTHER_PYTHONS)
def test_one_binary_for_every_python(version: str, image: Path, run) -> None:
    """As the interpreter of the process, and as the one that is started in a C program."""
    python = _other_python(version, BUILD / "tests" / f"python{version}")
    if python is None:
        pytest.skip(f"no Python {version} on this machine")
    result = subprocess.run(
        [python, "-c", SCRIPT, str(library()), str(image), KERNEL],
        env=environment(MGPU_RT_VERBOSE="1"),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.stdout == "ok\n", result.stderr
    assert f"module cache in Python {version}" in result.stderr
    assert "policy in Python (the interpreter of this process)" in result.stderr
    hosted = run("plain", MGPU_RT_PYTHON=python).stderr
    assert f"module cache in Python {version}" in hosted
    assert "HIP through ctypes" in hosted  # that environment has no hip-python


def test_preloaded_into_python_that_never_calls(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-c", "print('ok')"],
        env={**os.environ, "LD_PRELOAD": str(library())},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (result.stdout, result.stderr) == ("ok\n", "")
