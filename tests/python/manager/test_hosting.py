"""Tests the manager of programs that do not use Python: how the library finds an interpreter, and
what happens if there is no interpreter."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.python.manager.test_hosting_python import PRELUDE
from tests.support.child import ROOT, environment, library
from tests.support.compiled import compile_c
from tests.support.hosting import (
    KERNEL,
    bare_python,
    ends,
    good,
    host_command,
    image,
    manager_of,
    managers,
    only_line,
    promptly,
    python_with_cffi,
    run_host,
)
from tests.support.patience import HANG, run_process


def counts(log: Path) -> dict[str, int]:
    """Returns how often the program has called each function of the stub."""
    return json.loads(log.read_text())["counts"]


# ---- kinds of hosts -----------------------------------------------------------------------------

SERVED, ALONE, SILENT = "served", "alone", "silent"
ON = {"MGPU_RT_MANAGER": "on"}  # starts only if a manager is needed
OFF = {"MGPU_RT_MANAGER": "off,delay=0"}
LIMIT = {"MGPU_RT_MODULE_LIMIT": "10K"}
LOCALE = {"LC_ALL": "C.UTF-8"}
NOWHERE = dict.fromkeys(("PYTHONHOME", "PYTHONPATH", "PYTHONSTARTUP"), "/nowhere")
FORKS = ("fork-before", "fork-after", "fork-busy", "fork-first")

#: For each host program: its mode, its variables, and its stderr. A manager serves the program
#: until its end, it has no manager, it prints nothing at all, or it prints words of the reason.
HOSTS: list[tuple[str, dict[str, str], str | None]] = [
    *((mode, {}, SERVED) for mode in ("served", "local-served", "served-main-ends")),
    *((mode, {}, None) for mode in ("plain", "local-plain", "thread", "local-thread", "threads")),
    *((mode, {}, None) for mode in ("dlclose", "late", "small-stack", "main-ends")),
    # The library adds no child process, signal, descriptor or loaded library. The locale never
    # changes, even for a moment, and signals that the program blocks reach no thread.
    *((mode, LOCALE, None) for mode in ("state", "locale", "signals")),
    *((mode, {**LIMIT, **python}, None) for mode in FORKS for python in ({}, OFF)),
    # A manager that comes at a limit comes as any other.
    ("served", {**ON, **LIMIT}, SERVED),
    *((mode, {**ON, **LIMIT}, None) for mode in (*FORKS, "late", "main-ends")),
    *((mode, ON, ALONE) for mode in ("plain", "threads", "fork-after")),
    ("plain", {"MGPU_RT_MANAGER": f"delay={HANG}000"}, ALONE),
    ("plain", OFF, ALONE),
    ("plain", {"MGPU_RT_CACHE": "off"}, ALONE),
    ("nothing", {}, SILENT),
    # The manager would become a child of a program that adopts orphans.
    ("reaper", {}, "this process adopts orphans"),
    # A PYTHONHOME for another interpreter would terminate the manager's interpreter.
    ("served", NOWHERE, SERVED),
    ("served", {"PATH": ""}, SERVED),
]


@pytest.mark.parametrize(("mode", "variables", "says"), HOSTS)
def test_a_host_runs_as_without_a_manager(
    mode: str, variables: dict[str, str], says: str | None
) -> None:
    """The stub reports calls after HIP's exit handlers (trap 10)."""
    said = good(mode, HIPSTUB_TEARDOWN="1", **variables)
    assert "teardown" not in said or mode == "late"
    if says == SERVED:
        version, process = manager_of(said)
        assert version == sys.version.split()[0]
        assert ends(process)
    elif says in (ALONE, SILENT):
        assert "manage" not in said and (says == ALONE or said == "")
    elif says:
        assert says in only_line(said)


def test_without_hip_no_python_is_started() -> None:
    result = run_host("plain", promptly(MGPU_RT_HIP="/nowhere/libamdhip64.so"))
    assert "no HIP library" in result.stderr and "manage" not in result.stderr


# ---- start and end of the manager ---------------------------------------------------------------


PIPES = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}


def manager_that_came(program: subprocess.Popen[str]) -> int:
    """Waits until the program prints a line about its manager; returns the manager's process id."""
    assert program.stderr
    said = ""
    while "process" not in said:
        line = program.stderr.readline()
        assert line, said
        said += line
    return manager_of(said)[1]


@pytest.mark.parametrize("how", ["exit", "kill", "exec"])
def test_manager_ends_with_the_program(how: str) -> None:
    """The program may end in any way, or become another program by exec."""
    pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(
        host_command(f"end-{how}"), env=promptly(), text=True, **pipes
    ) as program:
        assert ends(manager_that_came(program))
        if how == "exec":
            assert program.poll() is None  # the process is another program by now
            program.kill()


# ---- when the manager starts ---------------------------------------------------------------------


def when_needed(**changes: str) -> dict[str, str]:
    return promptly(**{**ON, **changes})


MEMORY = """
lib.mgpuMemAlloc.argtypes = [ctypes.c_uint64, ctypes.c_void_p, ctypes.c_bool]
lib.mgpuMemFree.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
def use(*sizes):
    for block in [lib.mgpuMemAlloc(size, None, False) for size in sizes]:
        lib.mgpuMemFree(block, None)
use(100000, 200000)
before = state()
use(*SIZES)
while state() == 'starting':
    time.sleep(0.01)
print(before, state())
"""


@pytest.mark.parametrize(
    ("sizes", "changes", "after"),
    [
        ("100000, 200000", {"MGPU_RT_MEMORY_LIMIT": "1M"}, "none"),
        ("600000, 700000, 800000", {"MGPU_RT_MEMORY_LIMIT": "1M"}, "serving"),
        ("500000, 600000", {"HIPSTUB_MEMORY": "1200000", "MGPU_RT_MEMORY_LIMIT": "8M"}, "serving"),
    ],
    ids=["within", "limit", "out of memory"],
)
def test_a_limit_on_memory_starts_the_manager(
    sizes: str, changes: dict[str, str], after: str
) -> None:
    """The manager also starts if an allocation fails for lack of memory, even if the cache is
    within its limit."""
    source = PRELUDE + MEMORY.replace("SIZES", f"({sizes})")
    command = [sys.executable, "-c", source, str(library()), str(image()), KERNEL]
    done = run_process(command, when_needed(HIPSTUB_MODE="record", **changes))
    assert done.stdout == f"none {after}\n", done.stderr


# ---- what the program could notice --------------------------------------------------------------


@pytest.mark.parametrize(
    ("shell", "mode"),
    [
        # A file that the library opened could get the number of a closed standard stream.
        ('"$0" "$@" 0<&-', "state"),
        ('"$0" "$@" 0<&- 1>&- 2>&-', "state"),
        # Memory limits that are too low for an interpreter may be sufficient for the program.
        ('ulimit -v 20480; exec "$0" "$@"', "plain"),
        ('ulimit -v 163840; exec "$0" "$@"', "plain"),
        ('ulimit -u 1; exec "$0" "$@"', "plain"),  # no new process, unless root asks for one
    ],
)
def test_a_program_runs_within_its_limits(shell: str, mode: str) -> None:
    result = run_process(["sh", "-c", shell, *host_command(mode)], promptly(LC_ALL="C"))
    assert result.returncode == 0, result.stderr


CONSTRUCTOR = """
#include "program.h"
static const unsigned char image[] = {{{}}};
static __attribute__((constructor)) void load(void) {{
    puts(mgpuModuleLoad((void *)image, 0) ? "loaded" : "not loaded");
}}
"""

#: A program that exits once the manager has started, or has failed to start.
OPENER = """
#include "program.h"
int main(void) {{
    void *plugin = dlopen("{}", RTLD_NOW);
    puts(plugin ? "opened" : dlerror());
    fflush(stdout);
    const char *(*manager)(void);
    *(void **)&manager = dlsym(plugin, "mgpu_rt_manager");
    while (strcmp(manager(), "starting") == 0)
        usleep(5000);
}}
"""


def test_a_first_call_may_be_in_a_constructor(tmp_path: Path) -> None:
    """The call runs inside dlopen, which holds the loader's lock. The call inside dlopen does not
    wait for threads that need the loader's lock."""
    content = ", ".join(map(str, image().read_bytes()))
    flags = ("-shared", "-fPIC", str(library()), f"-Wl,-rpath,{library().parent}")
    plugin = compile_c(tmp_path / "plugin.so", CONSTRUCTOR.format(content), *flags)
    program = compile_c(tmp_path / "program", OPENER.format(plugin), "-ldl")
    done = run_process([str(program)], promptly())
    assert done.stdout == "loaded\nopened\n"
    manager_of(done.stderr)


# ---- which Python -------------------------------------------------------------------------------


def test_the_manager_is_not_preloaded() -> None:
    """The manager's LD_PRELOAD does not contain the library."""
    env = promptly(LD_PRELOAD=str(library()))
    with subprocess.Popen(host_command("served-until"), env=env, **PIPES) as program:
        given = Path(f"/proc/{manager_that_came(program)}/environ").read_bytes()
        program.communicate(timeout=HANG)
    assert program.returncode == 0
    assert b"LD_PRELOAD" not in given


def test_cffi_may_be_among_the_users_own_packages(tmp_path: Path) -> None:
    """The manager's Python starts with -I, which excludes the user's packages. If cffi is only
    among the user's packages, the manager also searches the user's packages."""
    python = bare_python()
    version = "python{}.{}".format(*sys.version_info)
    packages = tmp_path / ".local" / "lib" / version / "site-packages"
    packages.mkdir(parents=True)
    own = next(Path(sys.prefix, "lib").glob("python3*/site-packages"))
    for file in own.glob("_cffi_backend*"):
        (packages / file.name).symlink_to(file)
    good("served", MGPU_RT_MANAGER=f"{python},delay=0", HOME=str(tmp_path))


@pytest.mark.parametrize("path", ["/nowhere/python3", "/bin/true", "it's", "/", "/etc/passwd", ""])
def test_a_wrong_python_is_named_once(path: str) -> None:
    """If the named interpreter does not work, one line names the fault, and the library tries no
    second interpreter. The last interpreter lacks cffi."""
    python = path or str(bare_python())
    line = only_line(good("unserved", MGPU_RT_MANAGER=f"{python},delay=0"))
    assert f"({path}: " in line if path else "_cffi_backend" in line


#: Adopts orphans, and waits only for its own child.
NEVER_WAITS = """
import ctypes, subprocess, sys
ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER
sys.exit(subprocess.call(sys.argv[1:]))
"""


def test_a_wrong_python_is_named_where_nobody_waits_for_it() -> None:
    """In some containers a process that has ended stays a zombie."""
    command = [sys.executable, "-c", NEVER_WAITS, *host_command("unserved")]
    done = run_process(command, promptly(MGPU_RT_MANAGER="/bin/true,delay=0"))
    assert "(/bin/true: " in only_line(done.stderr)


def installation(directory: Path, *, note: str | None = None, lies: str = "build/lib") -> Path:
    """Copies the library and the package into a folder that resembles a checkout or an
    installation; returns the library's path."""
    lib = directory / lies
    lib.mkdir(parents=True)
    shutil.copy(library(), lib)
    if note is not None:
        (lib / "mgpu_rt.python").write_text(note + "\n")
    shutil.copytree(ROOT / "mgpu_rt", directory / "mgpu_rt", dirs_exist_ok=True)
    return lib / library().name


def run_from(lib: Path, mode: str, **env: str) -> subprocess.CompletedProcess[str]:
    return run_process(host_command(mode, lib), promptly(**env))


def python_of(said: str) -> str:
    """Returns the interpreter of the manager, as a program printed it."""
    found = re.search(r"manager: Python \S+, process \d+, '(.+)'", said)
    assert found, said
    return found[1]


@pytest.mark.parametrize("lies", ["build/lib", "mgpu_rt/lib"])
def test_the_note_beside_the_library_names_python(tmp_path: Path, lies: str) -> None:
    """A build in a checkout and `make install` write the interpreter's path to the file
    mgpu_rt.python in the library's folder."""
    lib = installation(tmp_path / "elsewhere", note=sys.executable, lies=lies)
    assert python_of(run_from(lib, "served", PATH=str(tmp_path)).stderr) == sys.executable


@pytest.mark.parametrize("quote", [None, "", "'", '"'])
def test_the_command_that_pip_installed_names_python(tmp_path: Path, quote: str | None) -> None:
    """pip writes the interpreter's path into the first line of the command mgpu-rt. If the path is
    long or contains a space, the second line contains the path, in quotes or not."""
    lib = installation(tmp_path / "lib" / "python3" / "site-packages", lies="mgpu_rt/lib")
    (tmp_path / "bin").mkdir()
    script = f'#!/bin/sh\n{3 * chr(39)}exec\' {quote}{sys.executable}{quote} "$0" "$@"\n'
    if quote is None:
        script = f"#!{sys.executable}\nimport sys\n"
    (tmp_path / "bin" / "mgpu-rt").write_text(script)
    assert python_of(run_from(lib, "served", PATH="").stderr) == sys.executable


@pytest.mark.parametrize("note", [None, "/nowhere/python3"])
def test_no_other_python_runs_than_the_recorded_one(tmp_path: Path, note: str | None) -> None:
    """If the recorded interpreter is gone, one line says so, also at a limit without any option,
    and the library evicts."""
    lib = installation(tmp_path / "a" / "b" / "c" / "d", note=note)
    venv = Path(sys.executable).parent.parent
    env = when_needed(MGPU_RT_MODULE_LIMIT="10K", MGPU_RT_VERBOSE="", VIRTUAL_ENV=str(venv))
    result = run_process(host_command("unserved", lib), env)
    assert result.stdout == "ok\n", result.stderr
    assert f"({note or 'none'}: " in only_line(result.stderr)


def test_python_decides_at_a_limit_with_ld_preload_alone(tmp_path: Path) -> None:
    """After `make`, a program that is preloaded with the library reaches its limit, and no other
    option is set: the recorded Python decides. The program's environment has no Python."""
    env = when_needed(
        LD_PRELOAD=str(library()), MGPU_RT_MODULE_LIMIT="10K", PATH="/nowhere", HOME=str(tmp_path)
    )
    said = run_host("served", env).stderr
    noted = (ROOT / "build" / "lib" / "mgpu_rt.python").read_text().strip()
    assert python_of(said) == os.environ.get("MGPU_RT_TEST_PYTHON", noted)


def test_a_package_of_another_version_is_named(tmp_path: Path) -> None:
    """If the versions of the package and the library differ, the library prints one line with the
    package's version, and the program continues."""
    lib = installation(tmp_path / "elsewhere", note=sys.executable)
    init = tmp_path / "elsewhere" / "mgpu_rt" / "__init__.py"
    init.write_text(init.read_text().replace('__version__ = "', '__version__ = "9'))
    result = run_from(lib, "unserved", PATH="")
    assert result.stdout == "ok\n"
    assert "the package mgpu_rt is 90." in only_line(result.stderr)


@pytest.mark.check
@pytest.mark.parametrize("version", ["3.10", "3.11", "3.12", "3.13", "3.14"])
def test_one_binary_for_every_python(version: str) -> None:
    python = python_with_cffi(version)
    if python is None:
        pytest.skip(f"no Python {version} on this machine")
    found, process = manager_of(good("served", MGPU_RT_MANAGER=f"{python},delay=0"))
    assert found.startswith(f"{version}.")
    assert ends(process)


# ---- HIP's life ---------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["plain", "served"])
@pytest.mark.parametrize(("version", "destroyed"), [("50221153", 0), ("70200000", 1)])
def test_exit_gives_back_at_most_idle_streams(
    mode: str, version: str, destroyed: int, tmp_path: Path
) -> None:
    """At exit, the library destroys idle streams if HIP is version 7 or later. The library destroys
    no other objects at exit. The destruction of blocks or modules at exit could wait for the
    device, but with stock the exit does not wait."""
    log = tmp_path / "log"
    good(mode, HIPSTUB_LOG=str(log), HIPSTUB_VERSION=version)
    found = counts(log)
    assert (found["hipModuleLoadData"], found["hipStreamCreate"]) == (1, 1)
    assert found.get("hipStreamDestroy", 0) == destroyed
    assert not {"hipModuleUnload", "hipFree", "hipHostFree"} & set(found)


def test_the_library_is_not_linked_with_python() -> None:
    """The library looks up the functions of an interpreter only for a runtime in Python."""
    linked = subprocess.check_output(["readelf", "--dynamic", "--dyn-syms", library()], text=True)
    assert not re.search(r"libpython|\bPy\w+", linked)


# ---- many programs ------------------------------------------------------------------------------


MODES = ("plain", "thread", "threads", "local-plain", "dlclose", "served")
DELAYS = ("0", "0", "1", "3", "10", "1000")  # milliseconds until the manager starts


@pytest.mark.parametrize(
    "count",
    [pytest.param(60, marks=pytest.mark.check), pytest.param(10_000, marks=pytest.mark.nightly)],
)
def test_many_short_programs_end_quietly(count: int) -> None:
    """Each program exits before, while or after its manager starts."""
    dice, programs = random.Random(count), set()
    for number in range(count):
        mode = MODES[number % len(MODES)]
        delay = "0" if mode == "served" else dice.choice(DELAYS)
        env = environment(MGPU_RT_MANAGER=f"delay={delay}")
        with subprocess.Popen(host_command(mode), env=env, stdout=subprocess.PIPE, **PIPES) as one:
            programs.add(one.pid)
            out, err = one.communicate(timeout=HANG)
        assert (one.returncode, out, err) == (0, "ok\n", ""), (number, mode, delay)
    assert all(ends(process) for process in managers(programs=programs))


def test_no_manager_is_left() -> None:
    """Each program of a sample exits at a different time."""
    programs: set[int] = set()
    for milliseconds in (0, 20, 50, 100, 200, 400):
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(host_command("served"), env=promptly(), **quiet) as program:
            programs.add(program.pid)
            try:
                program.wait(milliseconds / 1000)
            except subprocess.TimeoutExpired:
                program.send_signal(signal.SIGKILL)
    assert all(ends(process) for process in managers(programs=programs))
