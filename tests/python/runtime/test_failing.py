"""A faulty hook or runtime ends the program with a status that means failure. If a fault prevents a
call, the program does not continue."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

import mgpu_rt
from mgpu_rt._images.model import Argument
from mgpu_rt.hooks import LaunchHook, NanCheck
from mgpu_rt.runtime import Image, Launch, Runtime
from tests.python.runtime import failing
from tests.python.runtime.hooked import launch_on
from tests.python.runtime.test_hosting import asked, run
from tests.support.child import Mgpu, in_child, library
from tests.support.hosting import KERNEL, host, image
from tests.support.images import code_object
from tests.support.patience import run_process

pytestmark = pytest.mark.check  # each program starts a Python

alone = {"policies": ("builtin",)}

#: For each faulty hook or runtime: the program's exit status, and text on stderr.
ENDS = {
    "Misspelt": (1, "nothing calls Mine.on_lanch: do you mean on_launch?"),
    "MisspeltCall": (1, "nothing calls Mine.launch_kernle: do you mean launch_kernel?"),
    "NoHook": (1, "nothing calls Mine.on_launch: derive the class from mgpu_rt.hooks.LaunchHook"),
    "AsyncStream": (1, "does not fit stream_create(self) -> int"),
    "GeneratorHook": (1, "method returned <generator object _generator"),
    "HiddenSync": (1, "method returned <coroutine object _coroutine"),
    "TakesNothing": (1, "takes 1 positional argument but 2 were given"),
    "RaisingProperty": (1, "ZeroDivisionError"),
    "ReturnsNone": (1, "Mine.stream_create does not fit stream_create(self) -> int: "),
    "ReturnsHuge": (1, "too big to convert"),
    "ReturnsFromLaunch": (1, "method returned 0, but must return nothing"),
    "Raises": (1, "ZeroDivisionError: on purpose"),
    "Unspeakable": (1, "_Unspeakable"),
    "Recursive": (1, "RecursionError"),
    "ErrorOf40Bits": (1, "OverflowError"),
    "Exits": (0, ""),
    "ExitsWith7": (7, ""),
    "ExitsWith256": (1, ""),
    "ExitsWithReason": (1, "the reason\n"),
    "MakingRaises": (1, "MGPU_RT_RUNTIME=failing:MakingRaises: ZeroDivisionError: on purpose ("),
    "MakingUnspeakable": (1, "_Unspeakable: <exception str() failed> ("),
}


@pytest.mark.parametrize("name", ENDS)
def test_a_program_ends(name: str) -> None:
    done = run(f"failing:{name}")
    status, words = ENDS[name]
    assert (done.returncode, done.stdout) == (status, "")
    assert words in done.stderr
    assert words or not done.stderr


@pytest.mark.parametrize(
    ("name", "mode", "status", "out"),
    [
        ("HiddenEnd", "plain", 1, "ok\n"),
        ("EndRaises", "plain", 1, "ok\n"),
        ("EndExits", "plain", 3, "ok\n"),
        ("EndRaises", "late", 1, "ok\nlate failed\n"),  # an exit handler may write results
        ("EndExits", "nonsense", 1, "failed\n"),  # the program's own status stays
    ],
)
def test_a_failure_at_the_end_changes_the_status(
    name: str, mode: str, status: int, out: str
) -> None:
    done = run(f"failing:{name}", mode)
    assert (done.returncode, done.stdout) == (status, out)


@pytest.mark.parametrize(
    ("name", "out", "asked_for"),
    [("CallsItself", 1, 2), ("Forks", 3, 4), ("ReturnsNumber", 1, 0), ("OwnMethod", 1, 0)],
)
def test_a_program_goes_on(name: str, out: int, asked_for: int) -> None:
    """A forked child of the program also runs to its end. The program forks twice, and no child
    forks again."""
    done = run(f"failing:{name}")
    assert (done.returncode, done.stdout) == (0, "ok\n" * out), done.stderr
    assert done.stderr.count("asked") == asked_for


# ---- streams that are closed, or full ----

CLOSED_OR_FULL = [
    ("Raises", "2>&-", 1, ""),
    ("Raises", ">&- 2>&- <&-", 1, ""),
    ("ExitsWithReason", "2>/dev/full", 1, ""),
    ("MakingRaises", "2>&-", 1, ""),
    ("Prints", "2>&-", 0, "to stdout\nto stdout\nok\n"),
    ("Prints", ">&- 2>&- <&-", 0, ""),
    ("Prints", "2>/dev/full", 1, "to stdout\n"),
    ("Prints", ">/dev/full", 1, ""),
]


def run_redirected(runtime: str, redirected: str) -> subprocess.CompletedProcess[str]:
    words = f"{host()} {library()} {image()} {KERNEL} plain {redirected}"
    return run_process(["sh", "-c", words], asked(runtime))


@pytest.mark.parametrize(("name", "redirected", "status", "out"), CLOSED_OR_FULL)
def test_a_stream_that_cannot_be_written_changes_no_ending(
    name: str, redirected: str, status: int, out: str
) -> None:
    """Text for stderr never appears on stdout, because stdout may be a file with results."""
    done = run_redirected(f"failing:{name}", redirected)
    assert (done.returncode, done.stdout) == (status, out)


@pytest.mark.parametrize("hook", ["Trace", "Time"])
@pytest.mark.parametrize(("redirected", "status"), [("2>&-", 0), ("2>/dev/full", 1)])
def test_a_hook_that_ships_lets_the_program_go_on(hook: str, redirected: str, status: int) -> None:
    """The hook cannot print its lines. The exit status is 1 if stderr is full, but 0 if the user
    closed stderr."""
    done = run_redirected(f"mgpu_rt.hooks:{hook}", redirected)
    assert (done.returncode, done.stdout) == (status, "ok\n")


# ---- settings ----


@in_child(**alone)
def test_the_nan_hook_names_a_kernel_that_it_cannot_look_at(mgpu: Mgpu) -> None:
    """The hook prints one line about a kernel that was looked up before the hook was installed."""
    image = mgpu.image(code_object("forum"))
    function = mgpu.function(mgpu.load(image), "test_func")
    with mgpu_rt.intercept(NanCheck()):
        mgpu.launch(function)
        mgpu.launch(function)
        mgpu.launch(mgpu.function(mgpu.load(image), "test_func"))
    (line,) = mgpu.stderr().splitlines()
    assert line.startswith("mgpu_rt: the arguments of function 0x")
    assert " are unknown: its module was loaded before the hook or runtime. Load " in line


class _Looks(LaunchHook):
    def on_launch(self, launch: Launch) -> None:
        assert not launch.values and not [*launch.buffers()]
        super().on_launch(launch)


@in_child(**alone)
def test_a_hook_that_gets_no_arguments_says_why(mgpu: Mgpu) -> None:
    """The function is looked up within the `with`, so the hook knows the kernel's name."""
    image = mgpu.image(code_object("forum"))
    module = mgpu.load(image)
    with mgpu_rt.intercept(_Looks()):
        for _ in range(2):
            mgpu.launch(mgpu.function(module, "test_func"))
        mgpu.launch(mgpu.function(mgpu.load(image), "test_func"))
    (line,) = mgpu.stderr().splitlines()
    assert line.startswith("mgpu_rt: the arguments of test_func are unknown: ")


def test_a_launch_without_params_has_no_arguments_to_look_at() -> None:
    """A launch may pass its arguments in HIP's parameter `extra`."""
    arguments = [Argument(None, 8, None)]
    kernel = SimpleNamespace(label="k", arguments=arguments, description=None, image=Image(b""))
    runtime: Any = SimpleNamespace(kernel_of=lambda _function: kernel)
    launch = launch_on(runtime, 0)
    assert (launch.raw, launch.values, [*launch.buffers()]) == ([], [], [])


# ---- in a Python program ----


@in_child(**alone)
def test_intercept_leaves_all_as_it_was_if_it_cannot_install(mgpu: Mgpu) -> None:
    """A runtime cannot be installed if a property raises an exception, or if a method is None. An
    inner runtime that fails at its end leaves the outer one."""
    made = []

    class Seen(Runtime):
        def stream_create(self) -> int:
            made.append(1)
            return super().stream_create()

    kinds = (failing.RaisingProperty, failing.NoMethod, failing.EndRaises, failing.HiddenEnd)
    with mgpu_rt.intercept(Seen()):
        for kind in kinds:
            with pytest.raises((ZeroDivisionError, TypeError)), mgpu_rt.intercept(kind()):
                pass
            assert mgpu.StreamCreate()
    assert len(made) == len(kinds)


@in_child(**alone)
def test_a_name_that_is_no_text_passes_through(mgpu: Mgpu) -> None:
    from tests.python.runtime.runtimes import PassAll

    with mgpu_rt.intercept(PassAll()):
        module = mgpu.load(mgpu.image(code_object("forum")))
        name = mgpu.ffi.new("char[]", b"\xff")
        assert not mgpu.lib.mgpuModuleGetFunction(module, name)
        assert mgpu.lib.mgpu_rt_take_error() != mgpu.null


ENDS_IN_PYTHON = """
import ctypes, os
ctypes.CDLL(os.environ["LIBRARY"]).mgpuStreamCreate()
if child := os.fork():
    os.waitpid(child, 0)
"""


@pytest.mark.parametrize(
    ("runtime", "status", "said"),
    [
        ("runtimes:Names", 0, "the end\n"),
        ("failing:EndExits", 3, ""),
        ("failing:EndRaises", 1, "Z"),
    ],
)
def test_a_runtime_ends_with_a_python_program(runtime: str, status: int, said: str) -> None:
    """A forked child continues without the runtime, and does not end the runtime."""
    env = asked(runtime, LIBRARY=str(library()))
    done = run_process([sys.executable, "-c", ENDS_IN_PYTHON], env)
    assert done.returncode == status
    assert done.stderr.count(said) == 1 if said else not done.stderr


DEEP = """
import os, sys
from cffi import FFI
ffi = FFI()
ffi.cdef("void *mgpuStreamCreate(void); void mgpuStreamSynchronize(void *);")
lib = ffi.dlopen(os.environ["LIBRARY"])
stream, wait = lib.mgpuStreamCreate(), lib.mgpuStreamSynchronize
returned = []
def deep():
    try:
        deep()
    except RecursionError:
        if not returned:
            wait(stream)
            returned.append(True)
        raise
def go():
    try:
        deep()
    except RecursionError:
        pass
"""


def test_python_without_room_to_say_how_it_failed_ends_the_program() -> None:
    """At the recursion limit, Python can call neither the runtime's method nor the code that prints
    the method's exception."""
    env = asked("runtimes:PassAll", LIBRARY=str(library()))
    done = run_process([sys.executable, "-c", f"{DEEP}go(); print('went on')"], env)
    assert (done.returncode, done.stdout) == (1, "")
    assert "Python could not say how: it has no memory, or no depth of calls left" in done.stderr


WITHIN = """
import mgpu_rt
from runtimes import PassAll
try:
    with mgpu_rt.intercept(PassAll()):
        go()
except RuntimeError as error:
    print(error)
with mgpu_rt.intercept(PassAll()):
    pass
"""


def test_such_a_failure_comes_out_of_intercept() -> None:
    env = asked("", LIBRARY=str(library()))
    done = run_process([sys.executable, "-c", DEEP + WITHIN], env)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "a method has failed, and Python could not say how (stderr says more)\n"
