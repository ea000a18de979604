"""Python may finalise objects in the middle of a graph's construction, in a signal handler, after a
reset, or at exit."""

from __future__ import annotations

import gc
import itertools
import signal
import subprocess
import sys
from types import FrameType
from typing import Any

import pytest

import mgpu_rt
from tests.support.child import Mgpu, environment, in_child
from tests.support.images import code_object
from tests.support.patience import HANG
from tests.support.suites import in_check

on_stub = in_child(policies=("builtin",), backends=("stub",))
on_both = in_child(policies=("builtin",), backends=("stub", "softgpu"), HIPSTUB_REUSE="1")


def module(program: str = "vecadd") -> mgpu_rt.Module:
    return mgpu_rt.Module(code_object(program))


def plain_kinds() -> list[Any]:
    """Returns an array, a stream and a module."""
    return [mgpu_rt.empty(1 << 18), mgpu_rt.Stream(), module()]


def all_kinds() -> list[Any]:
    """Returns an array, a stream, a module, and a graph that has run."""
    array, library = mgpu_rt.empty(1 << 18), mgpu_rt.load()
    with mgpu_rt.graph() as graph:
        library.mgpuMemset32(array.__cuda_array_interface__["data"][0], 1, 4, 0)
    graph.replay()
    return [array, mgpu_rt.Stream(), module(), graph]


def handles(things: list[Any]) -> list[int]:
    """Returns the handles of the objects that the library hands out again."""
    array, stream, *_ = things
    return [array.__cuda_array_interface__["data"][0], stream.handle]


@on_both
def test_ends_while_a_graph_is_built_are_no_part_of_it(mgpu: Mgpu) -> None:
    """A graph under construction cannot contain the unload of a module with writable globals."""
    things = [*all_kinds(), module("globals")]
    before = handles(things)
    with mgpu_rt.graph() as graph:
        del things
        gc.collect()
    assert len(graph) == 0
    assert handles(all_kinds()) == before
    assert mgpu.stderr() == ""


@on_stub
def test_one_end_that_raises_loses_no_other(mgpu: Mgpu) -> None:
    """A signal handler may raise an exception in the middle of a release."""
    library, calls = mgpu_rt.load(), []

    def end(number: int) -> None:
        calls.append(number)
        if number % 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), library.giving_back_later():
        for number in range(4):
            library.give_back(library.life(), end, number)
        assert calls == []
    assert calls == [3, 2, 1, 0]


@on_both
def test_ends_in_a_signal_handler(mgpu: Mgpu) -> None:
    held: list[Any] = []

    def handle(_number: int, _frame: FrameType | None) -> None:
        held.clear()
        gc.collect()

    signal.signal(signal.SIGUSR1, handle)
    held.extend(all_kinds())
    before = handles(held)
    with mgpu_rt.graph() as graph:
        signal.raise_signal(signal.SIGUSR1)
        assert not held
    held.extend(all_kinds())
    assert handles(held) == before
    del graph
    signal.raise_signal(signal.SIGUSR1)
    assert handles(all_kinds()) == before
    assert mgpu.stderr() == ""


@on_both
def test_ends_after_a_reset_take_nothing_of_what_came_then(mgpu: Mgpu) -> None:
    """After the reset HIP reuses the addresses of streams and memory."""
    old = all_kinds()
    assert mgpu.stub.hipDeviceReset() == 0
    new = plain_kinds()
    del old
    gc.collect()
    others = plain_kinds()
    assert not set(handles(new)) & set(handles(others))
    assert mgpu.stderr() == ""


@on_both
def test_ends_right_after_a_reset_call_nothing(mgpu: Mgpu) -> None:
    things = all_kinds()
    assert mgpu.stub.hipDeviceReset() == 0
    del things
    gc.collect()
    assert mgpu.stderr() == ""


@in_child(policies=("builtin",), HIPSTUB_DEVICES="2", HIPSTUB_REUSE="1")
def test_a_reset_of_another_device_ends_no_life(mgpu: Mgpu) -> None:
    stream = mgpu_rt.Stream()
    handle = stream.handle
    mgpu_rt.load().mgpuSetDefaultDevice(1)
    mgpu_rt.Stream()
    assert mgpu.stub.hipDeviceReset() == 0
    mgpu_rt.Stream()
    mgpu_rt.load().mgpuSetDefaultDevice(0)
    del stream
    assert mgpu_rt.Stream().handle == handle


AT_EXIT = """
import atexit, gc, sys, threading
from tests.python.functions.test_finalizers import all_kinds
class Node:
    def __init__(self): self.me, self.held = self, all_kinds()
    def __del__(self): self.held.clear()
kept = all_kinds()
cycle = Node()
sys.late = Node()
atexit.register(Node().held.clear)
done = threading.Event()
def run():
    while True:
        all_kinds()
        done.set()
if {threaded}:
    threading.Thread(target=run, daemon=True).start()
    done.wait()
"""

UNFINISHED = "mgpu_rt: the graph is not built: the thread that builds it ends\n"
BESIDE_OTHERS = "a graph is launched while other threads make calls"  # before HIP 6.3


@pytest.mark.parametrize(
    ("backend", "threaded"),
    in_check(
        itertools.product(["stub", "softgpu"], [False, True]),
        lambda backend, threaded: threaded != (backend == "stub"),
    ),
)
def test_ends_at_exit(backend: str, threaded: bool) -> None:
    """Python may terminate the thread while the thread is building a graph."""
    done = subprocess.run(
        [sys.executable, "-c", AT_EXIT.format(threaded=threaded)],
        env=environment(backend),
        timeout=HANG,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert done.returncode == 0
    said = [line for line in done.stderr.splitlines(True) if BESIDE_OTHERS not in line]
    assert "".join(said) in ("", UNFINISHED if threaded else "")


# ---- streams ----


@on_both
def test_a_stream_ends_with_its_object(mgpu: Mgpu) -> None:
    stream = mgpu_rt.Stream()
    assert repr(stream) == f"<mgpu_rt.Stream {stream.handle:#x}>"
    handle = stream.handle
    stream.synchronize()
    del stream
    gc.collect()
    again = mgpu_rt.Stream()
    assert again.handle == handle  # the library had released the stream
    assert mgpu.stderr() == ""
