"""Generates instructions with random fields for every row of the tables, including rows that the
corpus lacks."""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from .device import ROOT

TABLES = ROOT / "softgpu/src/isa"
MASKS = {
    "ALL": ("gfx906", "gfx908", "gfx90a", "gfx942"),
    "SINCE908": ("gfx908", "gfx90a", "gfx942"),
    "SINCE90A": ("gfx90a", "gfx942"),
    "UNTIL908": ("gfx906", "gfx908"),
    "UNTIL90A": ("gfx906", "gfx908", "gfx90a"),
    "ONLY908_90A": ("gfx908", "gfx90a"),
    "GFX906": ("gfx906",),
    "GFX908": ("gfx908",),
    "GFX90A": ("gfx90a",),
    "GFX942": ("gfx942",),
}
ROW = re.compile(r'\bROW\(([0-9a-fx +]+), +((?:"[^"]*" *)+), *([^"\n]*?)\)(?= ROW|$)', re.M)


@dataclass(frozen=True)
class Row:
    """A row of a .def table."""

    family: str
    op: int
    name: str
    targets: tuple[str, ...]
    rest: tuple[str, ...]  # the columns after the mnemonic

    @property
    def meaning(self) -> str:
        return self.rest[-1]


def expanded(path: Path) -> str:
    """Returns a table's text; the preprocessor expands the macros that some tables use."""
    text = path.read_text()
    if "#" not in text:
        return text
    command = ["cc", "-E", "-P", "-x", "c", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@cache
def rows() -> list[Row]:
    """Returns every row of every table, in order."""
    found = []
    for path in sorted(TABLES.glob("*.def")):
        for op, name, rest in ROW.findall(expanded(path)):
            words = tuple(word.strip() for word in re.split(r",(?![^()]*\))", rest))
            targets = MASKS["ALL"]
            if words[0] in MASKS:
                targets, words = MASKS[words[0]], words[1:]
            number = sum(int(part, 0) for part in op.split("+"))
            name = re.sub(r'[" ]', "", name)
            found.append(Row(path.stem, number, name, targets, words))
    return found


class Fields:
    """Random contents of an instruction's fields. Vector register numbers are even, as gfx90a
    requires for wide operands; scalar register numbers are multiples of four."""

    def __init__(self, rng: random.Random, target: str = "gfx90a") -> None:
        self.rng = rng
        self.target = target

    def bits(self, count: int) -> int:
        return self.rng.getrandbits(count)

    def flag(self) -> int:
        return int(self.rng.random() < 0.2)

    def vgpr(self) -> int:
        return self.rng.randrange(0, 112) * 2

    def sgpr(self) -> int:
        return self.rng.randrange(0, 23) * 4

    def scalar(self) -> int:
        """Returns a scalar operand: a register, VCC, EXEC, or a constant."""
        constants = (*range(128, 209), *range(240, 249))
        kind = self.rng.randrange(6)
        return self.rng.choice(constants) if kind == 0 else 106 if kind == 1 else self.sgpr()

    def source(self) -> int:
        """Returns a random first operand of a vector instruction."""
        return 256 + self.vgpr() if self.rng.random() < 0.7 else self.scalar()


# Instructions that require a register where other instructions accept any operand, and instructions
# without an operand.
SCALAR_SOURCE = ("s_setpc_b64", "s_rfe_b64", "s_movrels_b32", "s_movrels_b64", "s_cbranch_join")
VECTOR_SOURCE = ("v_swap_b32", "v_readfirstlane_b32", "v_accvgpr_mov_b32")
LANE_SOURCE = ("v_readlane_b32", "v_writelane_b32")
NO_CONSTANT = (
    *("s_wakeup", "s_barrier", "s_icache_inv", "s_ttracedata", "s_endpgm_saved"),
    *("s_set_gpr_idx_off", "s_endpgm_ordered_ps_done"),
)
NO_HALVES = ("v_dot4_i32_i8", "v_dot4_u32_u8", "v_dot8_i32_i4", "v_dot8_u32_u4")


def sop1(row: Row, f: Fields) -> list[int]:
    dst, src = row.rest[0] != "NONE", row.rest[1] != "NONE"
    source = f.sgpr() if row.name in SCALAR_SOURCE else f.scalar()
    return [0xBE800000 | dst * f.sgpr() << 16 | row.op << 8 | src * source]


def sopc(row: Row, f: Fields) -> list[int]:
    second = f.bits(4) if row.name == "s_set_gpr_idx_on" else f.sgpr()
    return [0xBF000000 | row.op << 16 | second << 8 | f.scalar()]


def sopp(row: Row, f: Fields) -> list[int]:
    constant = f.bits(16)
    if row.name in NO_CONSTANT:
        constant = 0
    elif row.name.startswith("s_sendmsg"):
        constant = 1  # the only message that occurs in compute kernels
    elif row.name == "s_set_gpr_idx_mode":
        constant &= 15
    return [0xBF800000 | row.op << 16 | constant]


def smem(row: Row, f: Fields, immediate: bool) -> list[int]:
    head = 0xC0000000 | row.op << 18
    if row.meaning in ("SM_CACHE", "SM_MEMTIME", "SM_MEMREALTIME"):
        return [head | (row.rest[0] != "NONE") * f.sgpr() << 6, 0]
    glc = row.meaning not in ("SM_PROBE", "SM_DISCARD") and f.flag()
    data = 0 if row.meaning == "SM_DISCARD" else f.sgpr() << 6
    offset = f.bits(20) if immediate else f.sgpr()
    return [head | immediate << 17 | glc << 16 | data | f.sgpr() >> 1, offset]


def vop1(row: Row, f: Fields, long: bool) -> list[int]:
    dst, src = row.rest[0] != "NONE", row.rest[1] != "NONE"
    to = f.sgpr() if row.rest[0] == "SDST" else f.vgpr()
    source = 256 + f.vgpr() if row.name in VECTOR_SOURCE else f.source()
    if long:
        return [0xD0000000 | (row.op + 0x140) << 16 | dst * to, src * source]
    return [0x7E000000 | dst * to << 17 | row.op << 9 | src * source]


def vop2(row: Row, f: Fields, long: bool) -> list[int]:
    first, second = f.source(), 256 + f.vgpr()
    if not long:
        return [row.op << 25 | f.vgpr() << 17 | (second & 0xFF) << 9 | first]
    head = 0xD0000000 | (row.op + 0x100) << 16 | f.vgpr()
    carries = "CARRY_OUT" in row.rest[-2], "CARRY_IN" in row.rest[-2]
    return [head | carries[0] * f.sgpr() << 8, first | second << 9 | carries[1] * f.sgpr() << 18]


def vopc(row: Row, f: Fields, long: bool) -> list[int]:
    if long:
        return [0xD0000000 | row.op << 16 | f.sgpr(), f.source() | (256 + f.vgpr()) << 9]
    return [0x7C000000 | row.op << 17 | f.vgpr() << 9 | f.source()]


def three(row: Row, f: Fields) -> int:
    """Returns the source bits of an encoding with three sources. The bits of a source that the row
    lacks are 0."""
    kinds = row.rest[1:4]
    second = f.sgpr() if row.name in LANE_SOURCE else 256 + f.vgpr()
    third = f.sgpr() if kinds[2] == "MASK" else 256 + f.vgpr()
    sources = (f.source(), second, third)
    if row.name == "v_readlane_b32":
        sources = (256 + f.vgpr(), second, third)
    if row.name == "v_writelane_b32":
        sources = (f.sgpr(), second, third)
    return sum(s << 9 * n for n, s in enumerate(sources) if kinds[n] != "NONE")


def vop3(row: Row, f: Fields) -> list[int]:
    carry = ("CARRY_OUT" in row.rest[-2]) * f.sgpr() << 8
    to = f.sgpr() if row.rest[0] == "SDST" else f.vgpr()
    return [0xD0000000 | row.op << 16 | carry | to, three(row, f)]


def vop3p(row: Row, f: Fields) -> list[int]:
    count = sum(kind != "NONE" for kind in row.rest[1:4])
    halves = 0 if row.name in NO_HALVES else f.bits(count)
    high = 3 << 27, int(count == 3) << 14  # op_sel_hi, as packed instructions usually have it
    head = 0xD3800000 | row.op << 16 | halves << 11 | high[1]
    return [head | f.vgpr(), three(row, f) | high[0]]


def mfma(row: Row, f: Fields) -> list[int]:
    kinds = row.rest[1:4]
    sources = sum((256 + f.vgpr()) << 9 * n for n, kind in enumerate(kinds) if kind != "NONE")
    matrix = kinds[2] != "NONE"
    dense = matrix and "SPARSE" not in row.meaning
    blocks, lanes = matrix * f.bits(7) << 8, dense * f.bits(3) << 29  # cbsz and abid, blgp
    return [0xD3800000 | row.op << 16 | blocks | f.vgpr(), sources | lanes]


def ds(row: Row, f: Fields) -> list[int]:
    loaded, *stored = row.rest[:3]
    addressed = row.meaning not in ("DS_NOP", "DS_NO_ADDRESS")
    operands = (addressed, stored[0] != "NONE", stored[1] != "NONE", loaded != "NONE")
    offset = 0 if row.meaning == "DS_NOP" else f.bits(16)
    gds = row.name.startswith("ds_gws")
    word = sum(f.vgpr() << 8 * n for n, used in enumerate(operands) if used)
    return [0xD8000000 | row.op << 17 | gds << 16 | offset, word]


def flat(row: Row, f: Fields, segment: int) -> list[int]:
    offset = f.bits(12) | (f.bits(1) << 12 if segment else 0)
    saddr = f.rng.choice((0x7F, f.sgpr())) if segment else 0
    atomic = "ATOMIC" in row.meaning
    glc, address = f.flag(), f.vgpr()
    # Before gfx942, a scratch address is either a vector register or a scalar register. On gfx942,
    # one bit of the encoding decides whether the vector register is part of the address.
    indexed = f.bits(1) if f.target == "gfx942" else saddr == 0x7F
    if segment == 1 and not indexed:
        address = 0
    sve = int(segment == 1 and indexed and f.target == "gfx942")
    loads = row.rest[0] != "NONE" and (glc or not atomic)
    stores = row.rest[1] != "NONE"
    head = 0xDC000000 | row.op << 18 | f.flag() << 17 | glc << 16 | segment << 14 | sve << 13
    word = address | stores * f.vgpr() << 8 | saddr << 16 | loads * f.vgpr() << 24
    return [head | offset, word]


def mubuf(row: Row, f: Fields) -> list[int]:
    if row.meaning == "MV_CACHE":
        return [0xE0000000 | row.op << 18, 0]
    index = f.bits(2)
    head = 0xE0000000 | row.op << 18 | f.flag() << 17 | f.flag() << 14 | index << 12 | f.bits(12)
    address = f.vgpr() if index else 0
    return [head, address | f.vgpr() << 8 | f.sgpr() << 14 | f.scalar() << 24]


def mimg(row: Row, f: Fields) -> list[int]:
    samples = row.meaning in ("MV_IMAGE_SAMPLE", "MV_IMAGE_GATHER")
    mask = 1 << f.bits(2) if row.meaning == "MV_IMAGE_GATHER" else f.bits(4)
    head = 0xF0000000 | row.op << 18 | f.flag() << 12 | f.flag() << 13 | mask << 8
    resources = f.sgpr() << 14 | samples * f.sgpr() << 19
    return [head, f.vgpr() | f.vgpr() << 8 | resources]


Encoder = Callable[[Row, Fields], list[int]]

ENCODERS: dict[str, tuple[Encoder, ...]] = {
    "sop1": (sop1,),
    "sop2": (
        lambda row, f: [0x80000000 | row.op << 23 | f.sgpr() << 16 | f.sgpr() << 8 | f.scalar()],
    ),
    "sopk": (lambda row, f: [0xB0000000 | row.op << 23 | f.sgpr() << 16 | f.bits(16), f.bits(32)],),
    "sopc": (sopc,),
    "sopp": (sopp,),
    "smem": (partial(smem, immediate=True), partial(smem, immediate=False)),
    "vop1": (partial(vop1, long=False), partial(vop1, long=True)),
    "vop2": (partial(vop2, long=False), partial(vop2, long=True)),
    "vopc": (partial(vopc, long=False), partial(vopc, long=True)),
    "vop3": (vop3,),
    "vop3p": (vop3p,),
    "mfma": (mfma,),
    "ds": (ds,),
    "flat": (partial(flat, segment=0),),
    "scratch": (partial(flat, segment=1),),
    "global": (partial(flat, segment=2),),
    "mubuf": (mubuf,),
    "mimg": (mimg,),
}


def samples(target: str, count: int, rng: random.Random) -> Iterator[tuple[Row, list[int]]]:
    """Returns random encodings of every row that a target supports."""
    fields = Fields(rng, target)
    for row in rows():
        if target in row.targets:
            for encoder in ENCODERS[row.family]:
                for _ in range(count):
                    yield row, encoder(row, fields)
