"""Scratch accesses at every alignment: amdhsa's unaligned-access mode permits any address.

LLVM relies on unaligned access: LLVM copies a structure with alignment 2 by dwords.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator

import pytest

from .device import Fault, Memory, on_targets
from .memory_cases import ADDRESSES, CELL, REGION, SCRATCH_OUT, scratch_in
from .single import LANES, Batch, Wave

pytestmark = pytest.mark.check

LOADS = {"ubyte": 1, "ushort": 2, "dword": 4, "dwordx2": 8, "dwordx3": 12, "dwordx4": 16}
STORES = {"byte": 1, "short": 2, "dword": 4, "dwordx2": 8, "dwordx3": 12, "dwordx4": 16}
OFFSETS = (0, 1, 2, 3, 5, 6, 7, 14, 43, CELL - 16)
# v12 contains a number from 0 to 3 that differs between lanes, so one instruction tests every
# alignment.
STEP = "\n  v_lshrrev_b32 v12, 6, v1\n  v_and_b32 v12, 3, v12"
# The buffer descriptor of scratch that kernels receive, and the aperture through which flat
# instructions access scratch.
BUFFER = """
  s_mov_b32 s36, 0
  s_mov_b32 s37, 0x80001000
  s_mov_b32 s38, -1
  s_mov_b32 s39, 0xe0fa2
  v_mov_b32 v13, 0x20000
"""


def register(count: int, first: int) -> str:
    return f"v{first}" if count <= 4 else f"v[{first}:{first + count // 4 - 1}]"


def cases() -> Iterator[tuple[str, str, int, int, bool]]:
    for way in ("scratch", "buffer", "flat"):
        for table, store in ((LOADS, False), (STORES, True)):
            for name, size in table.items():
                for offset in OFFSETS:
                    if offset + 3 + size <= CELL:
                        text = _text(way, name, size, offset, store)
                        yield f"{way}_{name}_{offset}_{store:d}", text, size, offset, store


def _text(way: str, name: str, size: int, offset: int, store: bool) -> str:
    data = register(size, 2 if store else 14)
    verb = "store" if store else "load"
    if way == "buffer":
        operands = f"{data}, v12, s[36:39], 0 offen"
    else:
        address, base = ("v12", ", off") if way == "scratch" else ("v[12:13]", "")
        operands = f"{address}, {data}{base}" if store else f"{data}, {address}{base}"
    return f"{way}_{verb}_{name} {operands} offset:{offset}\n  s_waitcnt vmcnt(0) lgkmcnt(0)"


def wave(rng: random.Random) -> Wave:
    lanes = [tuple(rng.getrandbits(128) for _ in range(4)) for _ in range(LANES)]
    return Wave(2**64 - 1 ^ 0b100, 0, 0, (0, 0, 0), lanes)


@on_targets("gfx942", "gfx90a", "gfx906")
def test_scratch_can_be_read_at_every_alignment(target: str) -> None:
    batch = Batch(target)
    for name, text, *_ in cases():
        batch.add(
            name, text, ADDRESSES.format(shift=4) + scratch_in(target) + BUFFER + STEP, SCRATCH_OUT
        )
    code, buffer, rng = batch.load(), Memory(REGION), random.Random(target)
    for name, _, size, offset, store in cases():
        region, given = rng.randbytes(REGION), wave(rng)
        buffer.write(region)
        (result,) = code.run(name, [given], struct.pack("<Q", buffer.va), CELL)
        after = buffer.read(REGION)
        for lane in range(LANES):
            active = given.exec >> lane & 1
            old, at = region[lane * CELL : (lane + 1) * CELL], offset + lane % 4
            sources = given.lanes[lane]
            want, loaded = bytearray(old), sources[3].to_bytes(16, "little")
            if active and store:
                want[at : at + size] = sources[0].to_bytes(16, "little")[:size]
            elif active:
                kept = loaded[max(size, 4) :]
                loaded = old[at : at + size].ljust(4, b"\0") + kept
            assert after[lane * CELL : (lane + 1) * CELL] == want, (name, lane)
            assert result.lanes[lane] == int.from_bytes(loaded, "little"), (name, lane)


@pytest.mark.parametrize("past", (0, 1, 2, 3))
def test_the_end_of_scratch_is_respected_at_every_alignment(past: int) -> None:
    """A kernel can read the last bytes of scratch, but no bytes beyond the end."""
    batch, buffer = Batch("gfx90a"), Memory(REGION)
    setup = ADDRESSES.format(shift=4) + scratch_in("gfx90a")
    for name, start in (("inside", CELL - 4 - past), ("outside", CELL - 3 + past)):
        text = f"v_mov_b32 v12, {start}\n  scratch_load_dword v14, v12, off\n  s_waitcnt vmcnt(0)"
        batch.add(name, text, setup, SCRATCH_OUT)
    code, given = batch.load(), wave(random.Random(past))
    code.run("inside", [given], struct.pack("<Q", buffer.va), CELL)
    with pytest.raises(Fault, match="outside scratch memory"):
        code.run("outside", [given], struct.pack("<Q", buffer.va), CELL)


def test_atomics_of_scratch_want_their_alignment() -> None:
    batch, buffer = Batch("gfx90a"), Memory(REGION)
    text = "v_mov_b32 v12, 2\n  flat_atomic_add v[12:13], v2\n  s_waitcnt vmcnt(0) lgkmcnt(0)"
    batch.add("atomic", text, ADDRESSES.format(shift=4) + scratch_in("gfx90a") + BUFFER)
    with pytest.raises(Fault, match="misaligned atomic access to scratch"):
        batch.load().run("atomic", [wave(random.Random(1))], struct.pack("<Q", buffer.va), CELL)
