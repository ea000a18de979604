"""Tests accesses to buffers near the bound. The bound applies to each dword separately, and to the
sum of all offsets, including the scalar register's offset. A load of a dword outside the bound
returns 0; stores and atomics leave such a dword unchanged."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from .device import Memory, on_targets
from .memory_cases import ADDRESSES, REGION
from .single import LANES, Batch, Wave

pytestmark = pytest.mark.check

#: The number of loaded bytes, and the number of register bytes that the load writes.
LOADS = {
    "ubyte": (1, 4),
    "sbyte": (1, 4),
    "ushort": (2, 4),
    "short_d16": (2, 2),
    "short_d16_hi": (2, 2),
    "dword": (4, 4),
    "dwordx2": (8, 8),
    "dwordx3": (12, 12),
    "dwordx4": (16, 16),
}
STORES = {"byte": 1, "short": 2, "dword": 4, "dwordx2": 8, "dwordx3": 12, "dwordx4": 16}
#: The bound, the scalar register's offset, and the instruction's offset. Lane n adds 4 * n to the
#: two offsets; in an atomic, lane n adds n times the operand's size.
PLACES = (
    (131, 0, 0),
    (132, 0, 0),
    (128, 0, 0),
    (129, 0, 7),
    (160, 20, 3),
    (16, 20, 0),
    (REGION, 0, 0),
)


@dataclass(frozen=True)
class Case:
    verb: str  # load, store or atomic
    name: str
    size: int
    place: tuple[int, int, int]
    returns: bool = True  # for an atomic: the instruction returns the old value

    @property
    def label(self) -> str:
        return "_".join(map(str, (self.verb, self.name, *self.place, self.returns)))

    @property
    def step(self) -> int:
        return self.size if self.verb == "atomic" else 4

    @property
    def text(self) -> str:
        records, scalar, own = self.place
        first, count = (14 if self.verb == "load" else 2), self.size // 4
        data = f"v[{first}:{first + count - 1}]" if count > 1 else f"v{first}"
        returned = [f"\n  v_mov_b32 v{14 + n}, v{2 + n}" for n in range(count)]
        glc = f" glc{''.join(returned)}" if self.verb == "atomic" and self.returns else ""
        return f"""s_movk_i32 s38, {records}
  s_movk_i32 s40, {scalar}
  buffer_{self.verb}_{self.name} {data}, v12, s[36:39], s40 offen offset:{own}{glc}
  s_waitcnt vmcnt(0)"""

    def inside(self, lane: int, at: int, size: int) -> bool:
        records, scalar, own = self.place
        return scalar + own + self.step * lane + at + size <= records

    def address(self, lane: int) -> int:
        return self.place[1] + self.place[2] + self.step * lane


def cases() -> Iterator[Case]:
    for place in PLACES:
        yield from (Case("load", name, size, place) for name, (size, _) in LOADS.items())
        yield from (Case("store", name, size, place) for name, size in STORES.items())
        for name, size in (("add", 4), ("add_x2", 8)):
            if (place[1] + place[2]) % size == 0:
                yield from (Case("atomic", name, size, place, returns) for returns in (True, False))


def loaded(case: Case, lane: int, region: bytes, old: int) -> int:
    found = bytearray(case.size)
    piece = min(case.size, 4)
    for at in range(0, case.size, piece):
        if case.inside(lane, at, piece):
            from_ = case.address(lane) + at
            found[at : at + piece] = region[from_ : from_ + piece]
    value = int.from_bytes(found, "little", signed=case.name == "sbyte")
    width = 8 * LOADS[case.name][1]
    shift = 16 * case.name.endswith("_hi")
    mask = (1 << width) - 1 << shift
    return old & ~mask | value << shift & mask


def stored(case: Case, wave: Wave, region: bytes) -> bytes:
    after, piece = bytearray(region), min(case.size, 4)
    for lane in range(LANES):
        data = wave.lanes[lane][0].to_bytes(16, "little")
        for at in range(0, case.size, piece):
            if wave.exec >> lane & 1 and case.inside(lane, at, piece):
                to = case.address(lane) + at
                after[to : to + piece] = data[at : at + piece]
    return bytes(after)


def added(case: Case, wave: Wave, region: bytes) -> tuple[bytes, list[int]]:
    """Returns the memory after the atomics, and each lane's result."""
    after, got, size = bytearray(region), [], case.size
    mask = (1 << 8 * size) - 1
    for lane, (data, _, _, old) in enumerate(wave.lanes):
        to, before = case.address(lane), 0
        runs = wave.exec >> lane & 1
        if runs and case.inside(lane, 0, size):
            before = int.from_bytes(after[to : to + size], "little")
            after[to : to + size] = ((before + data) & mask).to_bytes(size, "little")
        got.append(old & ~mask | before if runs and case.returns else old)
    return bytes(after), got


@on_targets("gfx942", "gfx90a", "gfx906")
def test_accesses_beyond_the_bound_of_a_buffer_do_nothing(target: str) -> None:
    batch, rng, wrong = Batch(target), random.Random(target), []
    for case in cases():
        text = case.text.replace(" glc", " sc0") if target == "gfx942" else case.text
        batch.add(case.label, text, ADDRESSES.format(shift=3 if case.step == 8 else 4))
    code, buffer = batch.load(), Memory(REGION)
    for case in cases():
        lanes = [tuple(rng.getrandbits(128) for _ in range(4)) for _ in range(LANES)]
        wave = Wave(2**64 - 1 ^ 1 << 29 ^ 1 << 31, 0, 0, (0, 0, 0), lanes)  # type: ignore
        region = rng.randbytes(REGION)
        buffer.write(region)
        (result,) = code.run(case.label, [wave], struct.pack("<Q", buffer.va))
        after, want = region, [lane[3] for lane in lanes]
        if case.verb == "store":
            after = stored(case, wave, region)
        elif case.verb == "atomic":
            after, want = added(case, wave, region)
        else:
            want = [
                loaded(case, n, region, old) if wave.exec >> n & 1 else old
                for n, old in enumerate(want)
            ]
        if result.lanes != want or buffer.read(REGION) != after:
            wrong.append(case.label)
    assert not wrong, f"{len(wrong)} wrong: {', '.join(wrong[:12])}"


@on_targets("gfx942", "gfx906")
def test_accesses_beyond_the_bound_of_an_array_do_nothing(target: str) -> None:
    """The number of elements bounds an array, and the stride bounds each element."""
    stride, records, own = 16, 20, 8
    batch, rng = Batch(target), random.Random(target)
    text = f"""s_or_b32 s37, s37, {stride << 16}
  s_movk_i32 s38, {records}
  v_lshrrev_b32 v12, 6, v1
  buffer_load_dwordx4 v[14:17], v12, s[36:39], 0 idxen offset:{own}
  s_waitcnt vmcnt(0)"""
    batch.add("array", text, ADDRESSES.format(shift=4))
    buffer, region = Memory(REGION), rng.randbytes(REGION)
    buffer.write(region)
    lanes = [tuple(rng.getrandbits(128) for _ in range(4)) for _ in range(LANES)]
    wave = Wave(2**64 - 1, 0, 0, (0, 0, 0), lanes)  # type: ignore
    (result,) = batch.load().run("array", [wave], struct.pack("<Q", buffer.va))
    rest = [region[stride * lane + own : stride * (lane + 1)] for lane in range(records)]
    inside = [int.from_bytes(end, "little") for end in rest]
    assert result.lanes == inside + [0] * (LANES - records)
