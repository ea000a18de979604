"""After each call, the thread's last error and the printed lines are the same as with stock.

Each mgpu* function, in each situation (tests/runtime/last_error/situations.py), leaves the error
that stock leaves on the same release of HIP. The random driver's player plays each situation with
and without an earlier error of the program. The devices are the stub as HIP 5 and as HIP 7, AMD's
HIP 5.2.3, and later releases in `make check-rocm`.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pytest

from mgpu_rt import _abi
from tests.proofs.random import runner
from tests.runtime.last_error.compare import PENDING, Left, Played, differences, play
from tests.support import recordings
from tests.support.child import ROOT, Mgpu, in_cases, in_child, library
from tests.support.edge import at_the_edge
from tests.support.suites import in_check

HIP_7, NEVER = 70000000, 1 << 31
STUBS = ["stub-5", "stub-7"]
DEVICES = in_check([*STUBS, "softgpu"], lambda name: name == "softgpu")


@dataclass(frozen=True)
class Difference:
    """An intended difference between the library and stock. The fields name the situations, the
    devices and the reason."""

    pattern: str  # matches the whole name
    why: str
    device: str = ""  # only on devices whose names begin so
    since: int = 0  # from this version of HIP on
    below: int = NEVER  # before this version of HIP
    pending: bool = False  # only if an error was pending
    certain: bool = True  # the error is always there; otherwise stock's result is chance

    def holds(self, name: str, device: str, hip: int, pending: str) -> bool:
        return (
            re.fullmatch(self.pattern, name) is not None
            and device.startswith(self.device)
            and self.since <= hip < self.below
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
    Difference("load_jit", "loads, where HIP has no such call"),
    Difference("load_jit_text", "is refused, where HIP has no such call"),
    Difference(
        "event_(destroy|synchronize)_a_stream",
        "does what programs of LLVM 22 and older mean; AMD's HIP reads a stream as an event",
        device="stub",
    ),
    Difference(
        ".*_destroyed(_stream)?|(stream|event)_destroy_twice|.*_a_stream",
        "is refused; AMD's HIP goes on with memory that it has freed, and which calls look first "
        "differs by release",
        device="softgpu",
        certain=False,
    ),
    Difference(
        "stream_destroy_after_hips",
        "is HIP's own call up to HIP 6; HIP 7 then reads the stream's freed memory",
        device="softgpu",
        since=HIP_7,
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
def _played(side: str, device: str, pending: str, **options: str) -> Played:
    """Plays the situations with the library under test, or with stock."""
    folder = runner.STOCK.library if side == "stock" else str(library().parent)
    options = {"MGPU_RT_MANAGER": "off", **options}
    return play(runner.Side(side, folder, tuple(options.items())), device, pending)


@pytest.mark.parametrize(
    ("device", "pending"),
    [
        *product(STUBS, PENDING),
        *(
            pytest.param(
                "softgpu", pending, marks=pytest.mark.check if often else pytest.mark.nightly
            )
            for pending, often in zip(PENDING, (True, True, False), strict=True)
        ),
    ],
)
def test_every_situation_ends_as_with_stock(device: str, pending: str) -> None:
    ours, stocks = _played("ours", device, pending), _played("stock", device, pending)
    found = differences(ours, stocks)
    known = {
        difference: [
            name for name in ours.results if difference.holds(name, device, stocks.hip, pending)
        ]
        for difference in DIFFERENCES
    }
    allowed = {name for names in known.values() for name in names}
    assert {name: what for name, what in found.items() if name not in allowed} == {}
    certain = {name for known_one, names in known.items() if known_one.certain for name in names}
    assert certain - found.keys() == set(), "these differ no more"


@pytest.mark.parametrize("device", DEVICES)
def test_the_library_ends_the_process_only_where_stock_does(device: str) -> None:
    """The library does not end the process in situations in which HIP would read unreadable
    memory. HIP 5.2.3 reads the memory of a destroyed event, which holds what chance has left."""
    ours, stocks = _played("ours", device, "none"), _played("stock", device, "none")
    assert {name for name in ours.ended() if not EVENTS.fullmatch(name)} <= stocks.ended()
    ended = ours.ended()
    assert not [name for name in ended if not (FATAL.fullmatch(name) or EVENTS.fullmatch(name))]


@pytest.mark.parametrize("pending", ["none", "device"])
@pytest.mark.parametrize("device", DEVICES)
def test_a_trace_changes_nothing(device: str, pending: str) -> None:
    traced = _played("traced", device, pending, MGPU_RT_TRACE="/dev/null")
    found = differences(traced, _played("ours", device, pending))
    # HIP 5.2.3 reads the memory of a destroyed event: whether that ends the process is chance.
    assert {name for name in found if not EVENTS.fullmatch(name)} == set()


def test_the_situations_call_all_functions(tmp_path: Path) -> None:
    """Stock has no functions for sparse matrices, and the times of events are no errors."""
    _played("counted", "stub-5", "none", MGPU_RT_STATS=str(tmp_path / "%p"))
    counts = max((recordings.stats(path)["abi"] for path in tmp_path.iterdir()), key=len)
    stock = (ROOT / "bench" / "stock" / "stock.c").read_text()
    names = [call.name for call in _abi.functions() if f"{call.name}(" in stock]
    assert [name for name in names if not counts.get(name, {}).get("calls")] == []


def test_the_stub_serves_all_situations() -> None:
    """The test plays all situations on this device. None ends the process, and in many the call
    succeeds."""
    results = _played("ours", "stub-5", "none").results
    assert all(isinstance(result, Left) for result in results.values())
    good = [
        result
        for result in results.values()
        if isinstance(result, Left) and "0 0" in result.results and not result.failures
    ]
    assert len(good) > len(results) / 3


# ---- what is refused, one at a time ----


def _refused(mgpu: Mgpu) -> int:
    """Asserts that the last call has printed a failure; returns the thread's last error."""
    assert " failed with 'hipError" in mgpu.stderr()
    return mgpu.stub.hipGetLastError()


@in_cases({"5": {}, "7": {"HIPSTUB_VERSION": "70253211"}})
def test_a_memset_on_a_destroyed_stream_leaves_the_error_of_stock(mgpu: Mgpu, hip: str) -> None:
    """HIP 7 would read the destroyed stream's memory in every call that takes a stream, except in a
    launch."""
    stream = mgpu.StreamCreate()
    mgpu.StreamDestroy(stream)
    mgpu.Memset32(mgpu.MemAlloc(64, mgpu.null, False), 0, 16, stream)
    assert _refused(mgpu) == 709
    if hip == "7":
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
