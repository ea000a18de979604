"""Explains a memory fault from a recording: the block or the registered memory near an address, and
the last launches."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from mgpu_rt._cli.errors import CommandError
from mgpu_rt._record import Recording
from mgpu_rt._record_json import UNFINISHED, fault_address, statistics, trace
from mgpu_rt._text import shown

_NEWEST = 3  # launches that are shown
_PAGE = 4096  # AMD's driver reports the page of an address
_NULL = 1 << 16
_FAR = 1 << 30  # bytes from a block; such an address says little about the block

#: Errors after which a kernel has accessed memory that it may not access. NVIDIA's driver gives no
#: address, and HIP 7 ends no process.
_FAULTS = ("hipErrorIllegalAddress", "hipErrorLaunchFailure")

_ALLOCATE, _FREE = ("mgpuMemAlloc",), ("mgpuMemFree",)
_REGISTER = ("mgpuMemHostRegister", "mgpuMemHostRegisterMemRef")
_UNREGISTER = ("mgpuMemHostUnregister", "mgpuMemHostUnregisterMemRef")
_OTHER_ADDRESS = (
    "  this is the memory's address on the host: the device may know it at another one, which "
    "mgpuMemGetDeviceMemRef1dFloat returns (Int32 for i32); for other types use gpu.alloc and copy"
)


class Call(NamedTuple):
    """A call of the program. `begin` is in nanoseconds since the first call, and `pointers` are
    addresses that the call passes. `is_over` is False for a call that the end of the process
    interrupted."""

    name: str
    kernel: str
    stream: int | None
    begin: int
    bytes: int
    address: int
    place: str
    pointers: tuple[int, ...]
    error: str
    is_over: bool = True


@dataclass
class _Block:
    """Memory that the program held from one call to another: a block of the device's memory, or
    memory of the host that it registered."""

    address: int
    bytes: int
    begun: Call
    ended: Call | None = None

    @property
    def is_registered(self) -> bool:
        return self.begun.name in _REGISTER

    @property
    def words(self) -> tuple[str, str, str]:
        """Returns what began and what ended, and the end's name."""
        if self.is_registered:
            return "registered", "unregistered", "the unregister"
        return "allocated", "freed", "the free"

    def distance(self, address: int) -> int:
        """Returns how far an address is outside the block: negative before it, 0 within."""
        if address < self.address:
            return address - self.address
        return max(0, address - (self.address + self.bytes) + 1)


# ---- reading ----


def _calls(trace: dict[str, Any]) -> list[Call]:
    """Returns the program's calls in a trace. The first call begins at 0."""
    events = [event for event in trace["traceEvents"] if event.get("cat") == "program"]
    origin = min((event["ts"] for event in events), default=0)
    return sorted((_call(event, origin) for event in events), key=lambda call: call.begin)


def _call(event: dict[str, Any], origin: float) -> Call:
    args = event["args"]
    return Call(
        event["name"],
        args.get("kernel", ""),
        args.get("stream"),
        int(event["ts"] * 1000) - int(origin * 1000),
        args.get("bytes", 0),
        int(args.get("address", "0"), 16),
        args.get("place", ""),
        tuple(int(pointer, 16) for pointer in args.get("pointers", ())),
        args.get("error", ""),
        args.get("result") != UNFINISHED,
    )


def of_recording(recording: Recording) -> list[str]:
    """Returns lines about the fault in a recording; none if there was no fault, or if a recording
    without a trace has no address."""
    address = fault_address(recording)
    if not recording.is_trace:
        way = "mgpu-rt run --trace FILE records what lies there"
        told = f"a kernel accessed address {address or 0:#x}, which it may not access: {way}"
        return [told] if address is not None else []
    failed = {row["error"] for row in statistics(recording)["failed"]}
    if address is None and failed.isdisjoint(_FAULTS):
        return []
    return explained("", json.loads(trace(recording)))


# ---- explaining ----


def explained(path: str, found: Any, asked: int | None = None) -> list[str]:
    """Returns lines that explain the fault at an address, or the fault that ended the process of a
    trace; none if there was no fault. Raises CommandError."""
    if not isinstance(found, dict) or "traceEvents" not in found:
        raise CommandError(f"'{path}' has no addresses: record them by mgpu-rt run --trace FILE")
    address = asked
    if asked is None and "fault" in found["otherData"]:
        address = int(found["otherData"]["fault"], 16)
    calls = _calls(found)
    failed = next((call for call in calls if call.error in _FAULTS), None)
    if address is None and failed is None:
        return []
    if failed and asked is None:
        calls = [call for call in calls if call.begin < failed.begin]
    blocks = _blocks(calls)
    lines = []
    if address is not None:
        lines += _near(calls, blocks, address, found["otherData"].get("lost", 0))
    elif failed:
        lines.append(f"a kernel accessed wrong memory: {failed.name} reports {failed.error}")
    return [*lines, *_last_launches(calls, blocks)]


def _blocks(calls: Sequence[Call]) -> list[_Block]:
    held: dict[tuple[bool, int], _Block] = {}
    blocks = []
    for call in calls:
        key = call.name in _REGISTER + _UNREGISTER, call.address
        if call.name in _ALLOCATE + _REGISTER and call.address and not call.error:
            held[key] = _Block(call.address, call.bytes, call)
            blocks.append(held[key])
        elif call.name in _FREE + _UNREGISTER and key in held and not call.error:
            held.pop(key).ended = call
    return blocks


def _block_of(blocks: Sequence[_Block], pointer: int, before: int) -> _Block | None:
    """Returns the newest block that contained an address."""
    found = (b for b in reversed(blocks) if b.begun.begin < before and not b.distance(pointer))
    return next(found, None)


def _near(
    calls: Sequence[Call], blocks: Sequence[_Block], address: int, lost: int
) -> Iterator[str]:
    """Yields what is known of the block at or near an address. The newest of equally near blocks
    counts, and a block that the program holds before one that it has freed. The trace lacks its
    `lost` oldest events."""
    older = f"  the trace lacks the {lost:,} oldest events: an older block may be the one there"
    if address < _NULL:
        yield f"address {address:#x}: a null pointer, {address} bytes further"
        return
    if not blocks:
        yield f"address {address:#x}: no allocation or registration is recorded"
        yield from [older] * bool(lost)
        return
    block = min(
        reversed(blocks), key=lambda each: (abs(each.distance(address)), each.ended is not None)
    )
    distance = block.distance(address)
    far = abs(distance) >= _FAR
    yield f"address {address:#x}: {_where(block, address)}"
    if lost and (distance or block.ended):
        yield older
    if earlier := sum(not each.distance(address) and each is not block for each in blocks):
        kind = "registration" if block.is_registered else "block"
        yield f"  {earlier:,} earlier {kind}{'s' * (earlier != 1)} contained this address"
    if distance and not far and address % _PAGE == 0:
        yield "  the driver may name the beginning of a page: the access may be up to 4,095 further"
    if block.is_registered and not far:
        yield _OTHER_ADDRESS
    began, ended, _ = block.words
    yield f"  {began} {_when(block.begun)} by {_place(block)}"
    yield f"  {ended} {_when(block.ended)}" if block.ended else f"  not {ended}"
    yield from _given(calls, blocks, block)


def _where(block: _Block, address: int) -> str:
    """Returns where an address lies, as seen from a block."""
    distance = block.distance(address)
    where = f"{address - block.address:,} bytes into" if not distance else ""
    if distance:
        past = distance - 1
        where = f"{-distance:,} bytes before" if distance < 0 else f"{past:,} bytes past the end of"
    far = "far from every block; the nearest: " if abs(distance) >= _FAR else ""
    kind = "registered memory" if block.is_registered else "a block"
    return f"{far}{where} {kind} of {block.bytes:,} bytes at {block.address:#x}"


def _given(calls: Sequence[Call], blocks: Sequence[_Block], block: _Block) -> Iterator[str]:
    """Yields the newest calls that were given a block."""
    given = [
        call
        for call in calls
        if call.pointers
        and call.begin > block.begun.begin
        and any(_block_of(blocks, p, call.begin) is block for p in call.pointers)
    ]
    if not given:
        yield "  no recorded launch or copy was given it"
    for call in reversed(given[-_NEWEST:]):
        is_late = block.ended and block.ended.begin < call.begin
        late = f", after {block.words[2]}" if is_late else ""
        yield f"  given to {_name(call)} {_when(call)}{late}"


def _last_launches(calls: Sequence[Call], blocks: Sequence[_Block]) -> Iterator[str]:
    launches = [call for call in calls if "Launch" in call.name]
    if launches:
        yield "the last launches, newest first, and their blocks:"
    for call in reversed(launches[-_NEWEST:]):
        running = "" if call.is_over else ", which had not returned"
        yield f"  {_name(call)} {_when(call)}{running}"
        for pointer in dict.fromkeys(call.pointers):
            if block := _block_of(blocks, pointer, call.begin):
                kind = "registered by" if block.is_registered else "from"
                late = block.ended and block.ended.begin < call.begin
                ended = f", {block.words[1]} before" if late else ""
                yield f"    {pointer:#x}: {block.bytes:,} bytes {kind} {_place(block)}{ended}"


def _place(block: _Block) -> str:
    return shown(block.begun.place) or "the program"


def _name(call: Call) -> str:
    stream = "" if call.stream is None else f" in stream {call.stream}"
    return f"{shown(call.kernel or call.name)}{stream}"


def _when(call: Call) -> str:
    return f"at {call.begin / 1e6:.3f} ms"
