"""After each call, the thread's last error and the printed lines are the same as with stock.

Each mgpu* function, in each situation (tests/runtime/last_error/situations.def), leaves the error
that stock leaves on the same release of HIP. Each situation is played with and without an earlier
error of the program. The devices are the stub as HIP 5 and as HIP 7, AMD's HIP 5.2.3, and later
releases in `make check-rocm`.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

import pytest

from mgpu_rt import _abi
from tests.runtime.last_error.compare import (
    PENDING,
    SOURCES,
    Left,
    Played,
    differences,
    play,
)
from tests.support.child import ROOT, Mgpu, in_child, library
from tests.support.edge import at_the_edge
from tests.support.known import STOCK
from tests.support.suites import in_check

HIP_7, NEVER = 70000000, 1 << 31

#: Maps the name of each device to the name of the backend in tests.child, and to the settings of
#: the stub.
DEVICES = {
    "stub-5": ("stub", {}),
    "stub-7": ("stub", {"HIPSTUB_VERSION": "70253211"}),
    "softgpu": ("softgpu", {}),
}


@dataclass(frozen=True)
class Difference:
    """An intended difference between the library and stock. The fields name the situations, the
    devices and the reason."""

    pattern: str  # matches the whole name
    why: str
    backend: str = ""  # only on this one
    below: int = NEVER  # before this version of HIP
    pending: bool = False  # only if an error was pending
    certain: bool = True  # the error is always there; otherwise stock's result is chance

    def holds(self, name: str, backend: str, hip: int, pending: str) -> bool:
        return (
            re.fullmatch(self.pattern, name) is not None
            and self.backend in ("", backend)
            and hip < self.below
            and not (self.pending and pending == "none")
        )


DIFFERENCES = (
    Difference(
        "unload|function_hit|function_by_a_copy_of_its_name",
        "a hit asks HIP nothing, so the error stays, where up to HIP 6 a call that succeeds clears "
        "it: hipGetLastError takes 27 to 90 ns, more than the hit",
        below=HIP_7,
        pending=True,
    ),
    Difference("load_jit", "loads, where HIP has no such call", below=HIP_7, pending=True),
    Difference("load_jit_text", "is refused, where HIP has no such call"),
    Difference(
        "event_(destroy|synchronize)_a_stream",
        "does what programs of LLVM 22 and older mean; AMD's HIP reads a stream as an event",
        backend="stub",
    ),
    Difference(
        ".*_destroyed(_stream)?|(stream|event)_destroy_twice|.*_a_stream",
        "is refused; AMD's HIP goes on with memory that it has freed, and which calls look first "
        "differs by release",
        backend="softgpu",
        certain=False,
    ),
)

#: In each of these situations, some release of AMD's HIP ends the process, with stock and with this
#: library. Only HIP knows the result for an unknown handle or for a wrong image.
FATAL = re.compile(
    r".*_unknown(_stream)?|load_((elf|bundle|compressed)_.*|(.*_bytes|empty|text|junk|bitcode)_at_the_end|unreadable)"
)

#: If other code may call HIP, HIP decides what calls with a destroyed event do.
EVENTS = re.compile(r"(event_synchronize|record|wait_event|event_destroy)_(destroyed|twice)")


@functools.cache
def _played(stock: bool, device: str, pending: str) -> Played:
    backend, settings = DEVICES[device]
    return play(STOCK if stock else library(), backend, pending, **settings)


@pytest.mark.parametrize("pending", PENDING)
@pytest.mark.parametrize("device", in_check(DEVICES, lambda name: name == "softgpu"))
def test_every_situation_ends_as_with_stock(device: str, pending: str) -> None:
    ours, stocks = _played(False, device, pending), _played(True, device, pending)
    backend = DEVICES[device][0]
    found = differences(ours, stocks)
    known = {
        difference: [
            name for name in ours.results if difference.holds(name, backend, stocks.hip, pending)
        ]
        for difference in DIFFERENCES
    }
    allowed = {name for names in known.values() for name in names}
    assert {name: what for name, what in found.items() if name not in allowed} == {}
    certain = {name for known_one, names in known.items() if known_one.certain for name in names}
    assert certain - found.keys() == set(), "these differ no more"


@pytest.mark.parametrize("device", in_check(DEVICES, lambda name: name == "softgpu"))
def test_the_library_ends_the_process_only_where_stock_does(device: str) -> None:
    """The library does not end the process in situations in which HIP would read unreadable
    memory. HIP 5.2.3 reads the memory of a destroyed event, which holds what chance has left."""
    ours, stocks = _played(False, device, "none"), _played(True, device, "none")
    assert {name for name in ours.ended() if not EVENTS.fullmatch(name)} <= stocks.ended()
    ended = ours.ended()
    assert not [name for name in ended if not (FATAL.fullmatch(name) or EVENTS.fullmatch(name))]


@pytest.mark.parametrize("pending", ["none", "device"])
@pytest.mark.parametrize("device", in_check(DEVICES, lambda name: name == "softgpu"))
def test_a_trace_changes_nothing(device: str, pending: str) -> None:
    backend, settings = DEVICES[device]
    traced = {"MGPU_RT_TRACE": "/dev/null", **settings}
    ours = play(library(), backend, pending, **traced)
    found = differences(ours, _played(False, device, pending))
    # HIP 5.2.3 reads the memory of a destroyed event: whether that ends the process is chance.
    assert {name for name in found if not EVENTS.fullmatch(name)} == set()


def test_the_situations_call_all_functions() -> None:
    """Stock has no functions for sparse matrices."""
    text = "".join((SOURCES / name).read_text() for name in ("program.c", "situations.def"))
    stock = (ROOT / "bench" / "stock" / "stock.c").read_text()
    names = [f"{call.name}(" for call in _abi.functions()]
    assert [name for name in names if name in stock and name not in text] == []


def test_the_stub_serves_all_situations() -> None:
    """The test plays all situations on this device. None ends the process, and in many the call
    succeeds."""
    results = _played(False, "stub-5", "none").results
    assert all(isinstance(result, Left) for result in results.values())
    good = [result for result in results.values() if result == Left(0, 0, ())]
    assert len(good) > len(results) / 3


# ---- what is refused, one at a time ----


def _refused(mgpu: Mgpu) -> int:
    """Asserts that the last call has printed a failure; returns the thread's last error."""
    assert " failed with 'hipError" in mgpu.stderr()
    return mgpu.stub.hipGetLastError()


@in_child()
def test_a_memset_on_a_destroyed_stream_leaves_the_error_of_stock(mgpu: Mgpu) -> None:
    stream = mgpu.StreamCreate()
    mgpu.StreamDestroy(stream)
    mgpu.Memset32(mgpu.MemAlloc(64, mgpu.null, False), 0, 16, stream)
    assert _refused(mgpu) == 709


@in_child(HIPSTUB_VERSION="70253211")
def test_a_memset_on_a_destroyed_stream_leaves_the_error_of_hip_7(mgpu: Mgpu) -> None:
    """HIP 7 would read the destroyed stream's memory in every call that takes a stream, except in a
    launch."""
    stream = mgpu.StreamCreate()
    mgpu.StreamDestroy(stream)
    mgpu.Memset32(mgpu.MemAlloc(64, mgpu.null, False), 0, 16, stream)
    assert _refused(mgpu) == 709
    assert mgpu.counts("hipStreamQuery", "hipModuleLaunchKernel") == {
        "hipStreamQuery": 0,
        "hipModuleLaunchKernel": 1,
    }


@in_child()
def test_a_wait_for_a_destroyed_stream_leaves_the_error_of_stock(mgpu: Mgpu) -> None:
    """The library waits for the stream's work; in HIP 6 and older, this successful wait would clear
    the reported error."""
    stream = mgpu.StreamCreate()
    mgpu.StreamDestroy(stream)
    mgpu.StreamSynchronize(stream)
    assert _refused(mgpu) == 709


@in_child()
def test_an_image_of_a_few_bytes_is_not_read_beyond_its_end(mgpu: Mgpu) -> None:
    for content in (b"\xa5" * 3, b"text"):
        assert not mgpu.load(at_the_edge(mgpu, content))
        assert " failed with 'hipError" in mgpu.stderr()
