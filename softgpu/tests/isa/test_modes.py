"""Tests how the MODE register changes results, how results saturate, and which bits of a float
constant an integer instruction reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from . import oracle as o
from .device import TARGETS, on_targets
from .instructions import Meaning, Vector
from .single import LANES, Batch, Wave, limit_waves, random_waves
from .test_instructions import seeded
from .test_lanes import LOW, Expected, column, finite, floats, masked, rounded, run_all, shown

pytestmark = pytest.mark.check

FLUSHES = "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 4), 0"
NOT_IEEE = "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 9, 1), 0"
FACTORS = {"mul:2": 2.0, "mul:4": 4.0, "div:2": 0.5}


def flushed(number: o.Number) -> float:
    value = rounded(number)
    return 0.0 * value if abs(value) < 2.0**-126 else value


def scaled(factor: float) -> Expected:
    """Returns a function that computes a sum scaled by an output modifier. Denormal numbers become
    zero, and a sum of -0 becomes 0."""

    def total(x: list[float]) -> o.Number:
        a, b = (flushed(value) for value in x[:2])
        number = flushed(o.add(a, b))
        return flushed(o.mul(number, factor)) if number else 0.0

    return floats(total)


@pytest.mark.parametrize("modifier", FACTORS)
def test_output_modifiers_scale_results(modifier: str) -> None:
    """Output modifiers have no effect if MODE keeps denormal results or requires IEEE's rules."""
    text = f"v_add_f32_e64 v14, v2, v6 {modifier}"
    both = f"{FLUSHES}\n{NOT_IEEE}\n"
    plain = floats(lambda x: o.add(x[0], x[1]))
    without_denormals = floats(lambda x: flushed(o.add(flushed(x[0]), flushed(x[1]))))
    cases = {
        "neither": (text, "", plain),
        "denormals": (text, NOT_IEEE, plain),
        "IEEE": (text, FLUSHES, without_denormals),
        "effective": (both + text, "", scaled(FACTORS[modifier])),
    }
    run_all("gfx90a", cases, finite)


#: the instruction, one dword of the first source, one dword of the second source, and one dword of
#: the result
MODIFIED = (
    ("v_add_f16_e64 v14, v2, v6 mul:2", 0x3C00, 0x3800, 0x4200),  # 1 + 0.5
    ("v_add_f16_e64 v14, v2, v6 div:2", 0x8000, 0x8000, 0),  # -0
    ("v_add_f16_e64 v14, v2, v6 mul:4", 0x0400, 0x8401, 0),  # a denormal number
    ("v_cvt_pkrtz_f16_f32_e64 v14, v2, v6 mul:4", 0xBF800000, 0x80000000, 0xC400),
    ("v_cvt_pkrtz_f16_f32_e64 v14, v2, v6 div:2", 0x3F800000, 0xC0000000, 0xBC003800),
    ("v_add_f64 v[14:15], v[2:3], v[6:7] mul:2", 0x3FF00000, 0x3FF00000, 0x40100000),
    ("v_add_f64 v[14:15], v[2:3], v[6:7] div:2", 0x80000000, 0x80000000, 0),
)


def test_output_modifiers_scale_results_of_other_types() -> None:
    """The test sets the high word of each f64 operand; the low words are 0."""
    cases: dict[str, tuple[str, str, Expected]] = {}
    for text, a, b, result in MODIFIED:
        setup = f"{FLUSHES}\n{NOT_IEEE}\n"
        if "f64" in text:
            setup += f"v_mov_b32 v2, 0\nv_mov_b32 v3, {a}\nv_mov_b32 v6, 0\nv_mov_b32 v7, {b}"
            ends = f"{text}\nv_mov_b32 v14, v15"
        else:
            setup += f"v_mov_b32 v2, {a}\nv_mov_b32 v6, {b}"
            ends = text
        cases[f"{text} {a:x}"] = (ends, setup, shown(lambda _, result=result: result))
    run_all("gfx90a", cases)


def classes(bits: int) -> int:
    """Returns the class of an f32 as one bit, numbered as in v_cmp_class."""
    magnitude, negative = bits & 0x7FFFFFFF, bits >> 31
    if magnitude > 0x7F800000:
        return 1 << (bits >> 22 & 1)
    kind = 3 if not magnitude else 2 if magnitude < 0x800000 else magnitude < 0x7F800000
    return 4 << kind if negative else 0x200 >> kind


@pytest.mark.parametrize("mode", ("s_nop 0", FLUSHES))
def test_classes_depend_on_the_bits(mode: str) -> None:
    """v_cmp_class reports denormal numbers as denormal even if MODE treats them as zero."""
    cases = {}
    for number in range(10):
        text = "v_cmp_class_f32 s[34:35], v2, v6\nv_cndmask_b32 v14, 0, 1, s[34:35]"

        def expected(wave: Wave, number: int = number) -> list[int]:
            return masked(wave, [int(classes(a) == 1 << number) for a in column(wave, 0)])

        cases[str(number)] = (text, f"{mode}\nv_mov_b32 v6, {1 << number}", expected)
    run_all("gfx90a", cases)


def test_float_constants_of_16_bit_integers_have_32_bits() -> None:
    """The constants have 32 bits, and the instruction uses the low 16 bits."""
    cases = {}
    for constant, low in (("1.0", 0), ("-4.0", 0), ("0.15915494", 0xF983), ("-1", 0xFFFF)):

        def expected(wave: Wave, low: int = low) -> list[int]:
            return masked(wave, [b + low & 0xFFFF for b in column(wave, 1)])

        cases[constant] = (f"v_add_u16 v14, {constant}, v6", "", expected)
    run_all("gfx90a", cases)


def saturated(kind: str, number: int) -> int:
    width = int(kind[1:])
    low, high = (0, 2**width - 1) if kind[0] == "u" else (-(2 ** (width - 1)), 2 ** (width - 1) - 1)
    return o.clamp(low, number, high) & ((1 << width) - 1)


LONG = ("add_u32", "sub_u32", "subrev_u32", "add_u16", "sub_u16", "subrev_u16")
SINCE908 = ("gfx908", "gfx90a")


def dot(width: int, signed: bool) -> Meaning:
    return lambda a, b, c: o.dot(a, b, c, width, signed)


def saturating() -> Iterator[tuple[str, Vector]]:
    """Returns the integer instructions that VOP3's clamp saturates."""
    for t in ("u32", "i32", "u16", "i16"):
        two = (t, t)
        yield f"add_{t}", Vector(t, two, lambda a, b: a + b)
        yield f"sub_{t}", Vector(t, two, lambda a, b: a - b)
        if t[0] == "u":
            yield f"subrev_{t}", Vector(t, two, lambda a, b: b - a)
    for t in ("u16", "i16"):
        wide = f"{t[0]}32"
        yield f"mad_{t}", Vector(t, (t, t, t), lambda a, b, c: a * b + c)
        yield f"mad_{wide}_{t}", Vector(wide, (t, t, wide), lambda a, b, c: a * b + c)
    i24 = Vector("i32", ("i32",) * 3, lambda a, b, c: o.s24(a) * o.s24(b) + c)
    u24 = Vector("u32", ("u32",) * 3, lambda a, b, c: o.u24(a) * o.u24(b) + c)
    yield from (("mad_i32_i24", i24), ("mad_u32_u24", u24))
    for count, width in ((2, 16), (4, 8), (8, 4)):
        for sign in "iu":
            kind = f"{sign}32"
            meaning = dot(width, sign == "i")
            sources = ("b32", "b32", kind)
            yield f"dot{count}_{kind}_{sign}{width}", Vector(kind, sources, meaning)
        accumulating = Vector(
            "i32", ("b32", "b32", "i32"), dot(width, True), accumulates=True, targets=SINCE908
        )
        yield f"dot{count}c_i32_i{width}", accumulating


PAIRS: dict[str, Callable[..., int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mad": lambda a, b, c: a * b + c,
}
Clamped = Callable[[int, int, int, int], int]  # takes three sources and the old destination


def clamped_exact(op: Vector) -> Clamped:
    def apply(a: int, b: int, c: int, old: int) -> int:
        words = (a, b, old if op.accumulates else c)
        values = [o.decode(kind, raw) for kind, raw in zip(op.src, words, strict=False)]
        return saturated(op.dst, op.meaning(*values))

    return apply


def clamped_pair(operation: str, kind: str) -> Clamped:
    one = PAIRS[operation]
    count = 3 if operation == "mad" else 2

    def apply(*words: int) -> int:
        sides = zip(*(o.parts(w, 16, kind[0] == "i") for w in words[:count]), strict=True)
        return o.pack(*(saturated(kind, one(*side)) for side in sides))

    return apply


def saturations() -> Iterator[tuple[str, Clamped]]:
    for name, op in saturating():
        form = "_e64" if name in LONG or op.accumulates else ""
        third = ", v10" if len(op.src) == 3 and not op.accumulates else ""
        yield f"v_{name}{form} v14, v2, v6{third} clamp", clamped_exact(op)
    for operation in PAIRS:
        for kind in ("i16", "u16"):
            third = ", v10" if operation == "mad" else ""
            text = f"v_pk_{operation}_{kind} v14, v2, v6{third} clamp"
            yield text, clamped_pair(operation, kind)


@on_targets(*TARGETS)
def test_results_saturate_at_their_limits(target: str) -> None:
    """The inputs lie near the limits of the result types."""
    batch = Batch(target)
    cases = [case for case in saturations() if target != "gfx906" or "c_i32" not in case[0]]
    for n, (text, _) in enumerate(cases):
        batch.add(f"case_{n}", text)
    code = batch.load()
    wrong = []
    for n, (text, meaning) in enumerate(cases):
        waves = limit_waves(seeded(text), ["b32", "b32", "b32"])
        for wave, got in zip(waves, code.run(f"case_{n}", waves), strict=True):
            mask = 0xFFFF if text.split()[0].removesuffix("_e64").endswith("16") else LOW
            mask = LOW if "pk" in text or "32_" in text else mask
            for lane in range(LANES):
                words = [x & LOW for x in wave.lanes[lane]]
                want = meaning(*words) if wave.exec >> lane & 1 else words[3]
                if (got.lanes[lane] ^ want) & mask:
                    wrong.append(f"{text} {[*map(hex, words)]}: {got.lanes[lane] & LOW:#x}")
    assert not wrong, "\n".join([str(len(wrong)), *wrong[:12]])


CARRYING: dict[str, Callable[[int, int, int], int]] = {
    "v_add_co_u32_e64 v14, s[34:35], v2, v6": lambda a, b, carry: a + b,
    "v_sub_co_u32_e64 v14, s[34:35], v2, v6": lambda a, b, carry: a - b,
    "v_subrev_co_u32_e64 v14, s[34:35], v2, v6": lambda a, b, carry: b - a,
    "v_addc_co_u32_e64 v14, s[34:35], v2, v6, vcc": lambda a, b, carry: a + b + carry,
    "v_subb_co_u32_e64 v14, s[34:35], v2, v6, vcc": lambda a, b, carry: a - b - carry,
    "v_subbrev_co_u32_e64 v14, s[34:35], v2, v6, vcc": lambda a, b, carry: b - a - carry,
}


def test_sums_with_carry_saturate() -> None:
    """Saturation does not change the carry."""
    cases = {}
    for text, meaning in CARRYING.items():

        def both(wave: Wave, meaning: Callable[[int, int, int], int] = meaning) -> list[int]:
            exact = [
                meaning(lane[0] & LOW, lane[1] & LOW, wave.vcc >> n & 1)
                for n, lane in enumerate(wave.lanes)
            ]
            return masked(wave, [saturated("u32", x) ^ (not 0 <= x <= LOW) for x in exact])

        marked = f"{text} clamp\nv_cndmask_b32 v3, 0, 1, s[34:35]\nv_xor_b32 v14, v14, v3"
        cases[text] = (marked, "", both)
    run_all("gfx90a", cases)


def test_gfx942_has_one_partition() -> None:
    """The register XCC_ID contains 0, the number of the only partition."""
    text = "s_getreg_b32 s34, hwreg(HW_REG_XCC_ID)\nv_mov_b32 v14, s34"
    run_all("gfx942", {text: (text, "", shown(lambda wave: 0))})


def test_the_descriptor_decides_on_overflow_of_8_bit_floats() -> None:
    """f32 numbers beyond fp8's range become fp8's largest number."""
    batch = Batch("gfx942")
    batch.add("huge", "v_cvt_pk_fp8_f32 v14, v2, v6", "v_mov_b32 v2, 0x7149f2ca\nv_mov_b32 v6, v2")
    batch.sources = [
        s.replace(".end_amdhsa", ".amdhsa_fp16_overflow 1\n.end_amdhsa") for s in batch.sources
    ]
    waves = random_waves(seeded("overflow"), ["b32"], 1)
    (result,) = batch.load().run("huge", waves)
    assert {lane & 0xFFFF for lane in result.lanes} == {0x7F7F}
