"""Starts the processes of tests by fork: a small test takes 0.02 s of a core, and 0.2 s in a new
Python.

A nursery is a process that has parsed cffi's declarations, and imports each module before the first
child that needs the module. A nursery has loaded neither the library nor HIP. A child is a fork of
the nursery, with the environment and output that the test requests. The dynamic loader and
patience.py read variables when a process starts, so each value of these variables needs its own
nursery.

A child ends by C's `exit`, after Python's handlers of the exit: the end of the interpreter would
take 0.03 s. Tests of what the package does when the interpreter ends, end like any Python process.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import pkgutil
import re
import select
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from cffi import FFI

import mgpu_rt
from mgpu_rt import _library
from tests.support.patience import HANG

ROOT = Path(__file__).resolve().parents[2]
#: Environment variables that are read before a program runs.
AT_START = ("LD_", "GLIBC_", "MALLOC_", "PYTHON", "MGPU_RT_TEST_HANG")

#: Modules whose children end like any Python process.
PYTHON_ENDS = (
    "tests.python.functions.test_finalizers",
    "tests.python.manager.",
    "tests.python.runtime.test_failing",
)

#: Modules that the commands of mgpu-rt import late. At their import these modules read no variable
#: and no file of a user, so children may share them.
LATE = ("mgpu_rt._cli.check", "mgpu_rt._cli.inspect", "mgpu_rt._cli.stats", "mgpu_rt._images")

_busy = threading.Lock()
#: False if the tests start each program through another command (tests/devices/rocm/plugin.py).
forks = True


class Nursery:
    """Starts a nursery from the process of the tests, and requests children from the nursery."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.nursery"],
            cwd=ROOT,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        atexit.register(self.close)

    def run(
        self, command: Sequence[str], env: Mapping[str, str], name: str
    ) -> subprocess.CompletedProcess[str]:
        """Runs `main` of the module that the first word names, in a child that calls itself `name`.
        Raises TimeoutExpired."""
        assert self.process.stdin and self.process.stdout
        with tempfile.NamedTemporaryFile() as out, tempfile.NamedTemporaryFile() as err:
            order = {"command": command, "name": name, "cwd": os.getcwd()}
            order |= {"env": dict(env), "out": [out.name, err.name]}
            self.process.stdin.write(json.dumps(order).encode() + b"\n")
            self.process.stdin.flush()
            if not select.select([self.process.stdout], [], [], HANG)[0]:
                os.killpg(self.process.pid, signal.SIGKILL)
                nursery.cache_clear()
                raise subprocess.TimeoutExpired(list(command), HANG)
            status = int(self.process.stdout.readline())
            said = [Path(file.name).read_text(errors="replace") for file in (out, err)]
        return subprocess.CompletedProcess(list(command), status, *said)

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


@functools.cache
def nursery(at_start: tuple[tuple[str, str], ...]) -> Nursery:
    plain = {name: text for name, text in os.environ.items() if not name.startswith(AT_START)}
    return Nursery({**plain, **dict(at_start)})


def run(
    command: Sequence[str], env: Mapping[str, str], name: str = ""
) -> subprocess.CompletedProcess[str]:
    """Runs a module's `main` with arguments in a separate process. `name` becomes the first word of
    the process's arguments."""
    if not forks:
        plain = [sys.executable, "-m", *command]
        at = ROOT if command[0].startswith("tests.") else None
        return subprocess.run(plain, cwd=at, env=env, capture_output=True, text=True, timeout=HANG)
    at_start = sorted((name, text) for name, text in env.items() if name.startswith(AT_START))
    with _busy:  # a nursery runs one child at a time, for all threads
        return nursery(tuple(at_start)).run(command, env, name or command[0])


def main() -> None:
    """In a nursery: forks a child for each line of the standard input, and prints how the child
    ended."""
    from tests.support import child

    child.declarations()
    libc = FFI()
    libc.cdef("void exit(int status);")
    leave = libc.dlopen(None).exit
    for line in iter(lambda: sys.stdin.buffer.readline(), b""):
        order = json.loads(line)
        module, *arguments = order["command"]
        test = arguments[0] if module.startswith("tests.") else module
        prepare(module)
        prepare(test)
        gc.freeze()  # a child's collector would copy the pages of all these objects
        process = os.fork()
        if process == 0:
            become(order["env"], order["out"])
            os.chdir(order["cwd"])
            sys.argv = [order["name"], *arguments]
            sys.orig_argv = [sys.executable, *sys.argv]
            sys.modules["__main__"].__package__ = None  # click calls the command by its file
            status = played(module)
            if test.startswith(PYTHON_ENDS):
                raise SystemExit(status)
            end(leave, status)
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        os.write(sys.stdout.fileno(), f"{status}\n".encode())


def prepare(module: str) -> None:
    """Imports a module of tests for all further children. Imports nothing if the module is loaded,
    or cannot be imported here: then the child reports the fault."""
    if module in sys.modules:
        return
    before = _loaded()
    with contextlib.suppress(Exception):
        importlib.import_module(module)
        if module.startswith("tests.python."):
            for name in mgpu_rt.__all__:  # the package imports most of its modules late
                getattr(mgpu_rt, name)
            _library.declarations()
        for package in LATE if module == "mgpu_rt._cli.main" else ():
            folder = importlib.import_module(package).__path__
            for late in pkgutil.iter_modules(folder, f"{package}."):
                importlib.import_module(late.name)
    assert _loaded() == before, module


def _loaded() -> set[str]:
    """Returns the libraries in this process that a child has to load itself."""
    maps = Path("/proc/self/maps").read_text()
    return set(re.findall(r"/lib(?:mlir_rocm_runtime|amdhip64|cuda)\.so\S*", maps))


def played(module: str) -> int:
    """Runs a module's `main`, and returns the exit status of the child."""
    try:
        importlib.import_module(module).main()
    except SystemExit as ended:
        if not isinstance(ended.code, int):
            raise  # with a text that Python prints
        return ended.code
    return 0


def end(leave: Callable[[int], None], status: int) -> NoReturn:
    """Ends a child as C's `exit` does, after what Python does before it ends its interpreter."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
    except OSError:
        raise SystemExit(status) from None  # Python reports it, and changes the status
    leave(status)
    raise AssertionError("exit returns")


def become(env: Mapping[str, str], out: Sequence[str]) -> None:
    """Gives this process the environment and the output of a child."""
    os.environ.clear()
    os.environ.update(env)
    for number, path in enumerate([os.devnull, *out]):
        opened = os.open(path, os.O_RDONLY if path == os.devnull else os.O_WRONLY | os.O_APPEND)
        os.dup2(opened, number)
        os.close(opened)


if __name__ == "__main__":
    main()
