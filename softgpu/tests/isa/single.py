"""Runs single instructions, each in its own kernel; all kernels are assembled together. Every wave
has its own EXEC, VCC, SCC and scalars, and every lane has three sources and an old destination."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import pytest

from .device import BEGIN, CodeObject, Fault, Memory, assemble, dispatch

LANES, WAVES = 64, 8
LANE_BYTES, HEADER = 64, 64
IN_WAVE = LANES * LANE_BYTES + HEADER
OUT_WAVE = LANES * 16 + HEADER

KERNEL = (
    BEGIN
    + """\
  s_load_dwordx4 s[8:11], s[0:1], 0x0
  s_waitcnt lgkmcnt(0)
  s_mul_i32 s3, s2, {in_wave}
  s_add_u32 s8, s8, s3
  s_addc_u32 s9, s9, 0
  v_lshlrev_b32 v1, 6, v0
  global_load_dwordx4 v[2:5], v1, s[8:9]
  global_load_dwordx4 v[6:9], v1, s[8:9] offset:16
  global_load_dwordx4 v[10:13], v1, s[8:9] offset:32
  global_load_dwordx4 v[14:17], v1, s[8:9] offset:48
  s_load_dwordx8 s[16:23], s[8:9], 0x1000
  s_load_dwordx4 s[24:27], s[8:9], 0x1020
  s_waitcnt vmcnt(0) lgkmcnt(0)
  s_mov_b64 vcc, s[18:19]
  {setup}
  s_cmp_lg_u32 s26, 0
  s_mov_b64 exec, s[16:17]
  {text}
  s_mov_b64 s[28:29], exec
  s_cselect_b32 s26, 1, 0
  s_mov_b64 exec, -1
  {after}
  s_mul_i32 s3, s2, {out_wave}
  s_add_u32 s10, s10, s3
  s_addc_u32 s11, s11, 0
  v_lshlrev_b32 v1, 4, v0
  global_store_dwordx4 v1, v[14:17], s[10:11]
  v_mov_b32 v2, s24
  v_mov_b32 v3, s25
  v_mov_b32 v4, vcc_lo
  v_mov_b32 v5, vcc_hi
  v_mov_b32 v6, s28
  v_mov_b32 v7, s29
  v_mov_b32 v8, s26
  v_mov_b32 v1, 0
  s_mov_b64 exec, 1
  global_store_dwordx4 v1, v[2:5], s[10:11] offset:1024
  global_store_dwordx4 v1, v[6:9], s[10:11] offset:1040
  s_endpgm
.rodata
.p2align 6
.amdhsa_kernel {name}
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_system_sgpr_workgroup_id_x 1
  .amdhsa_next_free_vgpr 32
  .amdhsa_next_free_sgpr 64
  .amdhsa_group_segment_fixed_size {lds}
  .amdhsa_float_denorm_mode_32 {denormals}
  .amdhsa_float_denorm_mode_16_64 {denormals}
  .amdhsa_float_round_mode_32 {rounding}
  .amdhsa_float_round_mode_16_64 {rounding}
  {extra}
.end_amdhsa_kernel
"""
)


@dataclass
class Wave:
    """The input of a wave; the class Result contains the output."""

    exec: int
    vcc: int
    scc: int
    scalars: tuple[int, int, int]  # two sources and the old destination, 64 bits each
    lanes: list[tuple[int, int, int, int]]  # three sources and the old destination, 128 bits each


@dataclass
class Result:
    exec: int
    vcc: int
    scc: int
    scalar: int
    lanes: list[int]


@dataclass
class Batch:
    """A batch of named instructions, which is assembled once and run with any input."""

    target: str
    denormals: int = 3
    rounding: int = 0
    sources: list[str] = field(default_factory=list)

    def add(self, name: str, text: str, setup: str = "", after: str = "", lds: int = 0) -> None:
        extra = ".amdhsa_accum_offset 32" if self.target in ("gfx90a", "gfx942") else ""
        self.sources.append(
            KERNEL.format(
                name=name,
                text=text,
                setup=setup,
                after=after,
                lds=lds,
                in_wave=IN_WAVE,
                out_wave=OUT_WAVE,
                denormals=self.denormals,
                rounding=self.rounding,
                extra=extra,
            )
        )

    def load(self) -> Loaded:
        return Loaded(self.target, assemble(self.target, "".join(self.sources)))


class Loaded:
    def __init__(self, target: str, image: bytes) -> None:
        self.target = target
        self.code = CodeObject(image)
        self.input = Memory(IN_WAVE * WAVES)
        self.output = Memory(OUT_WAVE * WAVES)

    def run(
        self, name: str, waves: Iterable[Wave], extra: bytes = b"", private: int = 0
    ) -> list[Result]:
        """Runs one instruction of the batch. `extra` contains additional kernel arguments, and
        `private` is the scratch size in bytes for each lane."""
        data = bytearray()
        for w in waves:
            for lane in w.lanes:
                data += b"".join(x.to_bytes(16, "little") for x in lane)
            data += struct.pack(
                "<QQQQQII", w.exec, w.vcc, w.scalars[0], w.scalars[1], w.scalars[2], w.scc, 0
            ).ljust(HEADER, b"\0")
        self.input.write(bytes(data))
        arguments = struct.pack("<QQ", self.input.va, self.output.va) + extra
        count = len(data) // IN_WAVE
        kernel = self.code.kernel(name)
        kernel = replace(kernel, private_size=private or kernel.private_size)
        dispatch(self.target, kernel, [LANES * count], [LANES], arguments)
        results = []
        for n in range(count):
            raw = self.output.read(OUT_WAVE, n * OUT_WAVE)
            lanes = [int.from_bytes(raw[16 * i : 16 * i + 16], "little") for i in range(LANES)]
            scalar, vcc, exec_, scc = struct.unpack_from("<QQQI", raw, 16 * LANES)
            results.append(Result(exec_, vcc, scc, scalar, lanes))
        return results


SPECIAL_TEXT = {
    16: "0 1 8000 7fff ffff 3c00 bc00 7c00 fc00 7e00 7c01 0400 03ff 7bff 3800 4000 8001 fbff 3bff",
    32: """0 1 80000000 7fffffff ffffffff 3f800000 bf800000 7f800000 ff800000 7fc00000 7f800001
        00800000 007fffff 7f7fffff 3f000000 4f000000 cf000000 4f800000 80000001 7e800000 00000040
        477fe000 477ff000 33000000""",
    64: """0 1 8000000000000000 7fffffffffffffff ffffffffffffffff 3ff0000000000000
        bff0000000000000 7ff0000000000000 fff0000000000000 7ff8000000000000 7ff0000000000001
        0010000000000000 000fffffffffffff 7fefffffffffffff 3fe0000000000000 41dfffffffc00000
        c1e0000000000000 41f0000000000000 8000000000000001""",
}
SPECIAL = {width: [int(x, 16) for x in text.split()] for width, text in SPECIAL_TEXT.items()}
EXECS = [2**64 - 1, 0x5555AAAA0F0FF0F0, 2**64 - 1, 1, 2**64 - 1, 0xFFFFFFFF00000000, 2**63, 0]
NEAR_ONE = {16: (0x3000, 0x4800), 32: (0x3C000000, 0x43000000), 64: (0x3FB0 << 48, 0x4080 << 48)}


def value(rng: random.Random, width: int) -> int:
    """Returns a random value: a special value, a small integer, an ordinary float, or arbitrary
    bits."""
    kind = rng.randrange(6)
    if kind <= 1:
        return rng.choice(SPECIAL[width])
    if kind == 2:
        return rng.randrange(-70, 70) & ((1 << width) - 1)
    if kind == 3:
        low, high = NEAR_ONE[width]
        return rng.randrange(low, high) | rng.getrandbits(1) << (width - 1)
    return rng.getrandbits(width)


def source(rng: random.Random, kind: str) -> int:
    """Returns random register content for a type; the bits that a 16-bit operand must not read are
    also random."""
    width = int("".join(c for c in kind if c.isdigit()))
    if width == 64 and kind.startswith("p"):
        return value(rng, 32) | value(rng, 32) << 32
    if width == 16 or (width == 32 and kind == "b32" and rng.random() < 0.5):
        return value(rng, 16) | value(rng, 16) << 16
    return value(rng, width)


LIMITS = {
    8: (0, 1, 3, 4, 7, 8, 11, 12, 13, 15, 0x7F, 0x80, 0xFF),
    16: (0, 1, 7, 8, 15, 16, 17, 31, 32, 0x7F, 0x80, 0xFF, 0x100, 0x1FF, 0x7FFF, 0x8000, 0xFFFF),
}
LIMITS[32] = (
    *(*LIMITS[16], 23, 24, 33, 62, 63, 64, 65, 127, 128, 0x10000, 0x7FFFFF, 0x800000, 0xFFFFFF),
    *(0x1000000, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFE0, 0xFFFFFFFE, 0xFFFFFFFF),
    *(width << 16 | offset for width in (0, 1, 31, 32, 63, 64, 65, 127) for offset in (0, 31, 63)),
)
LIMITS[64] = (*LIMITS[32], *(x << 32 for x in LIMITS[32]), 2**63 - 1, 2**64 - 1)


def limit(rng: random.Random, kind: str) -> int:
    """Returns a special float for a float type. For an integer type, returns a boundary value
    of shift counts, widths, selectors or sums."""
    width = int("".join(c for c in kind if c.isdigit()))
    if kind[0] == "f":
        return rng.choice(SPECIAL[width])
    if kind[0] == "p":
        part = width if width == 16 else 32
        choices = (SPECIAL if kind[1] == "f" else LIMITS)[part]
        return rng.choice(choices) | rng.choice(choices) << part
    if width == 32 and rng.random() < 0.3:
        return sum(rng.choice(LIMITS[8]) << 8 * n for n in range(4))
    return rng.choice(LIMITS[width])


def limit_waves(rng: random.Random, kinds: list[str], count: int = WAVES) -> list[Wave]:
    """Returns waves whose source operands, in lanes and in scalars, all come from `limit`."""
    waves = random_waves(rng, kinds, count)
    for wave in waves:
        wave.lanes = [
            (*(limit(rng, kind) for kind in [*kinds, "b32", "b32", "b32"][:3]), lane[3])
            for lane in wave.lanes
        ]
        first, second = (limit(rng, kind) for kind in [*kinds, "b64", "b64"][:2])
        wave.scalars = (first, second, wave.scalars[2])
    return waves


def random_waves(rng: random.Random, kinds: list[str], count: int = WAVES) -> list[Wave]:
    """Returns `count` waves with random operands."""
    padded = [*kinds, "b64", "b64", "b64"][:3]
    waves = []
    for n in range(count):
        lanes = [(*(source(rng, k) for k in padded), rng.getrandbits(128)) for _ in range(LANES)]
        scalars = (*(source(rng, k) for k in padded[:2]), rng.getrandbits(64))
        waves.append(Wave(EXECS[n], rng.getrandbits(64), rng.getrandbits(1), scalars, lanes))
    return waves


def stopped_by(target: str, text: str) -> str:
    """Returns the fault message of an instruction that must stop a wave. Checks that the message
    names the instruction."""
    batch = Batch(target)
    batch.add("stop", text)
    with pytest.raises(Fault) as caught:
        batch.load().run("stop", random_waves(random.Random(text), ["b32"], 1))
    said = str(caught.value)
    assert text.split()[0] in said
    return said
