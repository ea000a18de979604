"""Lists the expected results of all vector and scalar instructions that the exact oracle covers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from . import oracle as o

Meaning = Callable[..., Any]


@dataclass(frozen=True)
class Vector:
    """A vector instruction. `dst` and `src` are types, and `tolerance` counts units in the last
    place."""

    dst: str
    src: tuple[str, ...]
    meaning: Meaning
    tolerance: int = 0
    accumulates: bool = False
    targets: tuple[str, ...] = ("gfx906", "gfx908", "gfx90a")


@dataclass(frozen=True)
class Scalar:
    """A scalar instruction. `meaning` maps the sources, SCC and the old destination to the result
    and SCC; None stands for an unchanged value."""

    dst: str
    src: tuple[str, ...]
    meaning: Meaning


VECTOR: dict[str, Vector] = {}
SCALAR: dict[str, Scalar] = {}
GFX90A = ("gfx90a",)
SINCE908 = ("gfx908", "gfx90a")


def v(name: str, dst: str, src: str, meaning: Meaning, tolerance: int = 0, **more: Any) -> None:
    VECTOR["v_" + name] = Vector(dst, tuple(src.split()), meaning, tolerance, **more)


def s(name: str, dst: str, src: str, meaning: Meaning) -> None:
    SCALAR["s_" + name] = Scalar(dst, tuple(src.split()), meaning)


def rounded(kind: str, value: o.Number) -> float:
    return o.decode(kind, o.encode(kind, value))


for f in ("f16", "f32", "f64"):
    float_only = f == "f64"
    v(f"add_{f}", f, f"{f} {f}", o.add)
    v(f"mul_{f}", f, f"{f} {f}", o.mul)
    v(f"fma_{f}", f, f"{f} {f} {f}", o.fma)
    v(f"min_{f}", f, f"{f} {f}", o.fmin)
    v(f"max_{f}", f, f"{f} {f}", o.fmax)
    v(f"trunc_{f}", f, f, o.whole(math.trunc))
    v(f"ceil_{f}", f, f, o.whole(math.ceil))
    v(f"floor_{f}", f, f, o.whole(math.floor))
    v(f"rndne_{f}", f, f, o.whole(round))
    v(f"fract_{f}", f, f, o.fract(f))
    v(f"rcp_{f}", f, f, lambda a: o.div(1.0, a), 1)
    v(f"sqrt_{f}", f, f, lambda a: a if a == 0 else o.NAN if a < 0 else math.sqrt(a), 1)
    v(
        f"rsq_{f}",
        f,
        f,
        lambda a: math.copysign(math.inf, a) if a == 0 else o.NAN if a < 0 else 1 / math.sqrt(a),
        1,
    )
    v(f"frexp_mant_{f}", f, f, o.frexp_mant)
    e = "i16_f16" if f == "f16" else f"i32_{f}"
    v(f"frexp_exp_{e}", e[:3], f, o.frexp_exp)
    v(f"ldexp_{f}", f, f"{f} {'i16' if f == 'f16' else 'i32'}", o.ldexp)
for f in ("f16", "f32"):
    v(f"sub_{f}", f, f"{f} {f}", o.sub)
    v(f"subrev_{f}", f, f"{f} {f}", lambda a, b: o.sub(b, a))
    v(f"mad_{f}", f, f"{f} {f} {f}", lambda a, b, c, f=f: o.add(rounded(f, o.mul(a, b)), c))
    v(
        f"mac_{f}",
        f,
        f"{f} {f} {f}",
        lambda a, b, c, f=f: o.add(rounded(f, o.mul(a, b)), c),
        accumulates=True,
    )
    v(f"min3_{f}", f, f"{f} {f} {f}", lambda a, b, c: o.fmin(o.fmin(a, b), c))
    v(f"max3_{f}", f, f"{f} {f} {f}", lambda a, b, c: o.fmax(o.fmax(a, b), c))
    v(f"med3_{f}", f, f"{f} {f} {f}", o.med3)
    v(
        f"exp_{f}",
        f,
        f,
        lambda a: a if a != a else math.inf if a > 1000 else 2.0 ** max(a, -1100.0),
        2,
    )
    v(
        f"log_{f}",
        f,
        f,
        lambda a: -math.inf if a == 0 else o.NAN if a < 0 else math.log2(a) if a == a else a,
        2,
    )

    def turns(function: Callable[[float], float], beyond: float) -> Meaning:
        def apply(a: float) -> float:
            if not math.isfinite(a):
                return o.NAN
            if abs(a) > 256:
                return beyond
            if a == 0:
                return a if beyond == 0 else 1.0
            quarter = Fraction(a) * 4
            if quarter.denominator == 1:  # multiples of a quarter turn are exact
                n = int(quarter) % 4 + (0 if beyond == 0 else 1)
                return (0.0, 1.0, 0.0, -1.0)[n % 4]
            return function(2 * math.pi * float(Fraction(a) - round(a)))

        return apply

    v(f"sin_{f}", f, f, turns(math.sin, 0.0), 2)
    v(f"cos_{f}", f, f, turns(math.cos, 1.0), 2)
v("fmac_f32", "f32", "f32 f32 f32", o.fma, accumulates=True)
v("fmac_f64", "f64", "f64 f64 f64", o.fma, accumulates=True, targets=GFX90A)
v("mul_legacy_f32", "f32", "f32 f32", o.legacy_mul)
v(
    "mad_legacy_f32",
    "f32",
    "f32 f32 f32",
    lambda a, b, c: o.add(rounded("f32", o.legacy_mul(a, b)), c),
)
v("rcp_iflag_f32", "f32", "f32", lambda a: o.div(1.0, a), 1)
v("exp_legacy_f32", "f32", "f32", VECTOR["v_exp_f32"].meaning, 2)
v("log_legacy_f32", "f32", "f32", VECTOR["v_log_f32"].meaning, 2)

# Conversions.
for pair in ("f64_f32", "f32_f64", "f32_f16", "f16_f32"):
    v(f"cvt_{pair}", pair[:3], pair[4:], lambda a: a)
for pair in ("f64_i32", "f64_u32", "f32_i32", "f32_u32", "f16_i16", "f16_u16"):
    v(f"cvt_{pair}", pair[:3], pair[4:], lambda a: Fraction(a))
for pair in ("i32_f64", "u32_f64", "i32_f32", "u32_f32", "i16_f16", "u16_f16"):
    v(f"cvt_{pair}", pair[:3], pair[4:], lambda a, to=pair[:3]: o.to_int(to, a))


def floor_to_int(a: o.Number) -> int:
    return o.to_int("i32", float(math.floor(a))) if math.isfinite(a) else o.to_int("i32", a)


v("cvt_flr_i32_f32", "i32", "f32", floor_to_int)
v(
    "cvt_rpi_i32_f32",
    "i32",
    "f32",
    lambda a: floor_to_int(Fraction(a) + Fraction(1, 2) if math.isfinite(a) else a),
)
v("cvt_off_f32_i4", "f32", "b32", lambda a: Fraction((a & 15) - (16 if a & 8 else 0), 16))
for n in range(4):
    v(f"cvt_f32_ubyte{n}", "f32", "b32", lambda a, n=n: Fraction(a >> 8 * n & 255))
v("cvt_norm_i16_f16", "i16", "f16", o.snorm)
v("cvt_norm_u16_f16", "u16", "f16", o.unorm)
for f in ("f16", "f32"):
    v(f"cvt_pknorm_i16_{f}", "b32", f"{f} {f}", lambda a, b: o.pack(o.snorm(a), o.snorm(b)))
    v(f"cvt_pknorm_u16_{f}", "b32", f"{f} {f}", lambda a, b: o.pack(o.unorm(a), o.unorm(b)))
v("cvt_pkrtz_f16_f32", "pf16", "b32 b32", lambda a, b: o.pack(*map(o.toward_zero_f16, (a, b))))
v("cvt_pk_u16_u32", "b32", "u32 u32", lambda a, b: o.pack(min(a, 65535), min(b, 65535)))
v(
    "cvt_pk_i16_i32",
    "b32",
    "i32 i32",
    lambda a, b: o.pack(o.clamp(-32768, a, 32767), o.clamp(-32768, b, 32767)),
)
v("pack_b32_f16", "b32", "b16 b16", o.pack)
v(
    "sat_pk_u8_i16",
    "b32",
    "b32",
    lambda a: sum(o.clamp(0, p, 255) << 8 * n for n, p in enumerate(o.parts(a, 16, True))),
)

# Integers.
v("mov_b32", "b32", "b32", lambda a: a)
v("not_b32", "b32", "b32", lambda a: ~a)
v("bfrev_b32", "b32", "b32", lambda a: o.reverse(a, 32))
v("ffbh_u32", "i32", "u32", lambda a: o.clz(a, 32))
v("ffbl_b32", "i32", "u32", o.ctz)
v("ffbh_i32", "i32", "i32", lambda a: o.sign_bits(a, 32))
for t in ("u32", "u16"):
    v(f"add_{t}", t, f"{t} {t}", lambda a, b: a + b)
    v(f"sub_{t}", t, f"{t} {t}", lambda a, b: a - b)
    v(f"subrev_{t}", t, f"{t} {t}", lambda a, b: b - a)
for t in ("i32", "i16"):
    v(f"add_{t}", t, f"{t} {t}", lambda a, b: a + b)
    v(f"sub_{t}", t, f"{t} {t}", lambda a, b: a - b)
for t in ("i32", "u32", "i16", "u16"):
    v(f"min_{t}", t, f"{t} {t}", min)
    v(f"max_{t}", t, f"{t} {t}", max)
    v(f"min3_{t}", t, f"{t} {t} {t}", min)
    v(f"max3_{t}", t, f"{t} {t} {t}", max)
    v(f"med3_{t}", t, f"{t} {t} {t}", o.imed3)
for t in ("i16", "u16"):
    v(f"mad_{t}", t, f"{t} {t} {t}", lambda a, b, c: a * b + c)
v("mul_lo_u16", "u16", "u16 u16", lambda a, b: a * b)
v("mul_lo_u32", "u32", "u32 u32", lambda a, b: a * b)
v("mul_hi_u32", "u32", "u32 u32", lambda a, b: a * b >> 32)
v("mul_hi_i32", "i32", "i32 i32", lambda a, b: a * b >> 32)
v("mul_i32_i24", "i32", "i32 i32", lambda a, b: o.s24(a) * o.s24(b))
v("mul_hi_i32_i24", "i32", "i32 i32", lambda a, b: o.s24(a) * o.s24(b) >> 32)
v("mul_u32_u24", "u32", "u32 u32", lambda a, b: o.u24(a) * o.u24(b))
v("mul_hi_u32_u24", "u32", "u32 u32", lambda a, b: o.u24(a) * o.u24(b) >> 32)
v("mad_i32_i24", "i32", "i32 i32 i32", lambda a, b, c: o.s24(a) * o.s24(b) + c)
v("mad_u32_u24", "u32", "u32 u32 u32", lambda a, b, c: o.u24(a) * o.u24(b) + c)
v("mad_u32_u16", "u32", "u16 u16 u32", lambda a, b, c: a * b + c)
v("mad_i32_i16", "i32", "i16 i16 i32", lambda a, b, c: a * b + c)
v("and_b32", "b32", "b32 b32", lambda a, b: a & b)
v("or_b32", "b32", "b32 b32", lambda a, b: a | b)
v("xor_b32", "b32", "b32 b32", lambda a, b: a ^ b)
v("xnor_b32", "b32", "b32 b32", lambda a, b: ~(a ^ b))
v("lshrrev_b32", "b32", "u32 u32", lambda a, b: b >> (a & 31))
v("lshlrev_b32", "b32", "u32 u32", lambda a, b: b << (a & 31))
v("ashrrev_i32", "i32", "u32 i32", lambda a, b: b >> (a & 31))
v("lshrrev_b16", "u16", "u16 u16", lambda a, b: b >> (a & 15))
v("lshlrev_b16", "u16", "u16 u16", lambda a, b: b << (a & 15))
v("ashrrev_i16", "i16", "u16 i16", lambda a, b: b >> (a & 15))
v("lshrrev_b64", "b64", "u32 u64", lambda a, b: b >> (a & 63))
v("lshlrev_b64", "b64", "u32 u64", lambda a, b: b << (a & 63))
v("ashrrev_i64", "i64", "u32 i64", lambda a, b: b >> (a & 63))
v("bfe_u32", "u32", "u32 u32 u32", lambda a, b, c: o.field(a, b & 31, c & 31, False))
v("bfe_i32", "i32", "i32 u32 u32", lambda a, b, c: o.field(a, b & 31, c & 31, True))
v("bfi_b32", "b32", "b32 b32 b32", lambda a, b, c: a & b | ~a & c)
v("bfm_b32", "b32", "u32 u32", lambda a, b: ((1 << (a & 31)) - 1) << (b & 31))
v("bcnt_u32_b32", "u32", "b32 u32", lambda a, b: a.bit_count() + b)
v("alignbit_b32", "b32", "b32 b32 b32", lambda a, b, c: (a << 32 | b) >> (c & 31))
v("alignbyte_b32", "b32", "b32 b32 b32", lambda a, b, c: (a << 32 | b) >> 8 * (c & 3))
v("perm_b32", "b32", "b32 b32 b32", o.perm)
v("lerp_u8", "b32", "b32 b32 b32", o.lerp8)
v("sad_u8", "u32", "b32 b32 u32", lambda a, b, c: o.sad8(a, b) + c)
v("sad_hi_u8", "u32", "b32 b32 u32", lambda a, b, c: (o.sad8(a, b) << 16) + c)
v("msad_u8", "u32", "b32 b32 u32", lambda a, b, c: o.msad8(a, b) + c)
v(
    "sad_u16",
    "u32",
    "b32 b32 u32",
    lambda a, b, c: (
        sum(abs(x - y) for x, y in zip(o.parts(a, 16, False), o.parts(b, 16, False), strict=False))
        + c
    ),
)
v("sad_u32", "u32", "u32 u32 u32", lambda a, b, c: abs(a - b) + c)


def quad_sad(a: int, b: int, c: int, one: Meaning) -> int:
    sums = [one(a >> 8 * n & 0xFFFFFFFF, b) + (c >> 16 * n & 0xFFFF) for n in range(4)]
    return sum((x & 0xFFFF) << 16 * n for n, x in enumerate(sums))


v("qsad_pk_u16_u8", "b64", "b64 b32 b64", lambda a, b, c: quad_sad(a, b, c, o.sad8))
v("mqsad_pk_u16_u8", "b64", "b64 b32 b64", lambda a, b, c: quad_sad(a, b, c, o.msad8))
v("xad_u32", "u32", "u32 u32 u32", lambda a, b, c: (a ^ b) + c)
v("lshl_add_u32", "u32", "u32 u32 u32", lambda a, b, c: (a << (b & 31)) + c)
v("add_lshl_u32", "u32", "u32 u32 u32", lambda a, b, c: (a + b) << (c & 31))
v("add3_u32", "u32", "u32 u32 u32", lambda a, b, c: a + b + c)
v("lshl_or_b32", "b32", "u32 u32 u32", lambda a, b, c: a << (b & 31) | c)
v("and_or_b32", "b32", "b32 b32 b32", lambda a, b, c: a & b | c)
v("or3_b32", "b32", "b32 b32 b32", lambda a, b, c: a | b | c)

# Dot products and packed 16-bit operations.
v(
    "dot2c_i32_i16",
    "i32",
    "b32 b32 i32",
    lambda a, b, c: o.dot(a, b, c, 16, True),
    accumulates=True,
    targets=SINCE908,
)
v(
    "dot4c_i32_i8",
    "i32",
    "b32 b32 i32",
    lambda a, b, c: o.dot(a, b, c, 8, True),
    accumulates=True,
    targets=SINCE908,
)
v(
    "dot8c_i32_i4",
    "i32",
    "b32 b32 i32",
    lambda a, b, c: o.dot(a, b, c, 4, True),
    accumulates=True,
    targets=SINCE908,
)
v("dot2_i32_i16", "i32", "b32 b32 i32", lambda a, b, c: o.dot(a, b, c, 16, True))
v("dot2_u32_u16", "u32", "b32 b32 u32", lambda a, b, c: o.dot(a, b, c, 16, False))
v("dot4_i32_i8", "i32", "b32 b32 i32", lambda a, b, c: o.dot(a, b, c, 8, True))
v("dot4_u32_u8", "u32", "b32 b32 u32", lambda a, b, c: o.dot(a, b, c, 8, False))
v("dot8_i32_i4", "i32", "b32 b32 i32", lambda a, b, c: o.dot(a, b, c, 4, True))
v("dot8_u32_u4", "u32", "b32 b32 u32", lambda a, b, c: o.dot(a, b, c, 4, False))


def halves(signed: bool, one: Meaning) -> Meaning:
    def apply(*words: int) -> int:
        lo, hi = zip(*(o.parts(w, 16, signed) for w in words), strict=True)
        return o.pack(one(*lo), one(*hi))

    return apply


def float_halves(one: Meaning) -> Meaning:
    def apply(*words: int) -> int:
        lo, hi = zip(*(o.parts(w, 16, False) for w in words), strict=True)
        return o.pack(
            *(o.encode("f16", one(*(o.decode("f16", h) for h in side))) for side in (lo, hi))
        )

    return apply


for t, signed in (("i16", True), ("u16", False)):
    v(f"pk_add_{t}", "b32", "b32 b32", halves(signed, lambda a, b: a + b))
    v(f"pk_sub_{t}", "b32", "b32 b32", halves(signed, lambda a, b: a - b))
    v(f"pk_min_{t}", "b32", "b32 b32", halves(signed, min))
    v(f"pk_max_{t}", "b32", "b32 b32", halves(signed, max))
    v(f"pk_mad_{t}", "b32", "b32 b32 b32", halves(signed, lambda a, b, c: a * b + c))
v("pk_mul_lo_u16", "b32", "b32 b32", halves(False, lambda a, b: a * b))
v("pk_lshlrev_b16", "b32", "b32 b32", halves(False, lambda a, b: b << (a & 15)))
v("pk_lshrrev_b16", "b32", "b32 b32", halves(False, lambda a, b: b >> (a & 15)))
v("pk_ashrrev_i16", "b32", "b32 b32", halves(True, lambda a, b: b >> (a & 15)))
v("pk_add_f16", "pf16", "b32 b32", float_halves(o.add))
v("pk_mul_f16", "pf16", "b32 b32", float_halves(o.mul))
v("pk_min_f16", "pf16", "b32 b32", float_halves(o.fmin))
v("pk_max_f16", "pf16", "b32 b32", float_halves(o.fmax))
v("pk_fma_f16", "pf16", "b32 b32 b32", float_halves(o.fma))
v("pk_fmac_f16", "pf16", "b32 b32 b32", float_halves(o.fma), accumulates=True, targets=SINCE908)
v("fma_mix_f32", "f32", "f32 f32 f32", o.fma)


def pair32(one: Meaning) -> Meaning:
    def apply(*wide: int) -> int:
        sides = [[o.decode("f32", w >> n) for w in wide] for n in (0, 32)]
        lo, hi = (o.encode("f32", one(*side)) for side in sides)
        return lo | hi << 32

    return apply


v("pk_add_f32", "pf32", "b64 b64", pair32(o.add), targets=GFX90A)
v("pk_mul_f32", "pf32", "b64 b64", pair32(o.mul), targets=GFX90A)
v("pk_fma_f32", "pf32", "b64 b64 b64", pair32(o.fma), targets=GFX90A)


# Scalar instructions.
def logic(width: int, one: Meaning) -> Meaning:
    def apply(*values: int) -> tuple[int, int]:
        result = one(*values[:-2]) & ((1 << width) - 1)
        return result, int(result != 0)

    return apply


def plain(one: Meaning) -> Meaning:
    return lambda *values: (one(*values[:-2]), None)


for width in (32, 64):
    t = f"b{width}"
    two = f"{t} {t}"
    s(f"and_{t}", t, two, logic(width, lambda a, b: a & b))
    s(f"or_{t}", t, two, logic(width, lambda a, b: a | b))
    s(f"xor_{t}", t, two, logic(width, lambda a, b: a ^ b))
    s(f"andn2_{t}", t, two, logic(width, lambda a, b: a & ~b))
    s(f"orn2_{t}", t, two, logic(width, lambda a, b: a | ~b))
    s(f"nand_{t}", t, two, logic(width, lambda a, b: ~(a & b)))
    s(f"nor_{t}", t, two, logic(width, lambda a, b: ~(a | b)))
    s(f"xnor_{t}", t, two, logic(width, lambda a, b: ~(a ^ b)))
    m = width - 1
    s(f"lshl_{t}", t, f"{t} u32", logic(width, lambda a, b, m=m: a << (b & m)))
    s(f"lshr_{t}", t, f"{t} u32", logic(width, lambda a, b, m=m: a >> (b & m)))
    s(f"ashr_i{width}", f"i{width}", f"i{width} u32", logic(width, lambda a, b, m=m: a >> (b & m)))
    s(f"bfm_{t}", t, "u32 u32", plain(lambda a, b, m=m: ((1 << (a & m)) - 1) << (b & m)))
    for kind, signed in (("u", False), ("i", True)):
        s(
            f"bfe_{kind}{width}",
            t,
            f"{kind}{width} u32",
            logic(
                width,
                lambda a, b, m=m, signed=signed: o.field(
                    a, b & m, min(b >> 16 & 127, m + 1), signed
                ),
            ),
        )
    s(f"cselect_{t}", t, two, lambda a, b, scc, old: (a if scc else b, None))
    s(f"mov_{t}", t, t, plain(lambda a: a))
    s(f"cmov_{t}", t, t, lambda a, scc, old: (a if scc else old, None))
    s(f"not_{t}", t, t, logic(width, lambda a: ~a))
    s(f"brev_{t}", t, t, plain(lambda a, width=width: o.reverse(a, width)))
    s(
        f"wqm_{t}",
        t,
        t,
        logic(
            width, lambda a, width=width: sum(15 << n for n in range(0, width, 4) if a >> n & 15)
        ),
    )
    s(
        f"quadmask_{t}",
        t,
        t,
        logic(
            width, lambda a, width=width: sum(1 << n for n in range(width // 4) if a >> 4 * n & 15)
        ),
    )
    s(f"bcnt0_i32_{t}", "i32", t, logic(32, lambda a, width=width: width - a.bit_count()))
    s(f"bcnt1_i32_{t}", "i32", t, logic(32, lambda a: a.bit_count()))
    s(f"ff0_i32_{t}", "i32", t, plain(lambda a, width=width: o.ctz(~a & ((1 << width) - 1))))
    s(f"ff1_i32_{t}", "i32", t, plain(o.ctz))
    s(f"flbit_i32_{t}", "i32", t, plain(lambda a, width=width: o.clz(a, width)))
    s(f"bitset0_{t}", t, "u32", lambda a, scc, old, m=m: (old & ~(1 << (a & m)), None))
    s(f"bitset1_{t}", t, "u32", lambda a, scc, old, m=m: (old | 1 << (a & m), None))
    s(f"bitcmp0_{t}", "", f"{t} u32", lambda a, b, scc, old, m=m: (None, int(not a >> (b & m) & 1)))
    s(f"bitcmp1_{t}", "", f"{t} u32", lambda a, b, scc, old, m=m: (None, a >> (b & m) & 1))


def fits(value: int) -> bool:
    return -(2**31) <= value < 2**31


s("add_u32", "u32", "u32 u32", lambda a, b, scc, old: (a + b, a + b >> 32))
s("sub_u32", "u32", "u32 u32", lambda a, b, scc, old: (a - b, int(b > a)))
s("add_i32", "i32", "i32 i32", lambda a, b, scc, old: (a + b, int(not fits(a + b))))
s("sub_i32", "i32", "i32 i32", lambda a, b, scc, old: (a - b, int(not fits(a - b))))
s("addc_u32", "u32", "u32 u32", lambda a, b, scc, old: (a + b + scc, a + b + scc >> 32))
s("subb_u32", "u32", "u32 u32", lambda a, b, scc, old: (a - b - scc, int(b + scc > a)))
for t in ("i32", "u32"):
    s(f"min_{t}", t, f"{t} {t}", lambda a, b, scc, old: (min(a, b), int(a < b)))
    s(f"max_{t}", t, f"{t} {t}", lambda a, b, scc, old: (max(a, b), int(a > b)))
    s(f"mul_hi_{t}", t, f"{t} {t}", plain(lambda a, b: a * b >> 32))
    for name, test in (
        ("eq", lambda a, b: a == b),
        ("lg", lambda a, b: a != b),
        ("gt", lambda a, b: a > b),
        ("ge", lambda a, b: a >= b),
        ("lt", lambda a, b: a < b),
        ("le", lambda a, b: a <= b),
    ):
        s(f"cmp_{name}_{t}", "", f"{t} {t}", lambda a, b, scc, old, q=test: (None, int(q(a, b))))
s("cmp_eq_u64", "", "u64 u64", lambda a, b, scc, old: (None, int(a == b)))
s("cmp_lg_u64", "", "u64 u64", lambda a, b, scc, old: (None, int(a != b)))
s("mul_i32", "i32", "i32 i32", plain(lambda a, b: a * b))
s("absdiff_i32", "i32", "i32 i32", logic(32, lambda a, b: abs(o.decode("i32", a - b))))
s("abs_i32", "i32", "i32", logic(32, abs))
for n in range(1, 5):
    s(
        f"lshl{n}_add_u32",
        "u32",
        "u32 u32",
        lambda a, b, scc, old, n=n: ((a << n) + b, int((a << n) + b >= 2**32)),
    )
s("pack_ll_b32_b16", "b32", "b32 b32", plain(lambda a, b: a & 0xFFFF | b << 16))
s("pack_lh_b32_b16", "b32", "b32 b32", plain(lambda a, b: a & 0xFFFF | b & 0xFFFF0000))
s("pack_hh_b32_b16", "b32", "b32 b32", plain(lambda a, b: a >> 16 | b & 0xFFFF0000))
s("sext_i32_i8", "i32", "b32", plain(lambda a: o.decode("i8", a)))
s("sext_i32_i16", "i32", "b32", plain(lambda a: o.decode("i16", a)))
s("flbit_i32", "i32", "i32", plain(lambda a: o.sign_bits(a, 32)))
s("flbit_i32_i64", "i32", "i64", plain(lambda a: o.sign_bits(a, 64)))
s(
    "bitreplicate_b64_b32",
    "b64",
    "b32",
    plain(lambda a: sum(3 << 2 * n for n in range(32) if a >> n & 1)),
)
