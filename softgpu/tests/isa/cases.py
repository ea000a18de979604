"""For each row of the arithmetic tables, generates an instruction's text and the result that AMD's
pseudocode computes. For instructions with imprecise pseudocode (DIFFERS), only the exact oracle
checks the result."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from .encodings import Row, rows
from .oracle import decode
from .pseudocode import evaluate, texts
from .single import LANES, Result, Wave
from .values import Value

VECTOR = ("vop1", "vop2", "vop3", "vop3p", "vopc")
SCALAR = ("sop1", "sop2", "sopc", "sopk")
TWO = ("B64", "I64", "U64", "F64", "PF32", "PB32", "MASK")
# The types in which results are compared, if an instruction's table row contains only a width.
RESULTS = {"v_cvt_pkrtz_f16_f32": "pf16", "v_sat_pk_u8_i16": "b16"}
KINDS = {"PF32": "p64", "PB32": "p64", "SLANE": "b32", "MASK": "b64", "B128": "b64"}
SOURCES = (2, 6, 10)
# Instructions, or single lanes of instructions, that the pseudocode does not check; each entry has
# the reason.
DIFFERS = {
    **dict.fromkeys(
        ("v_rndne_f16", "v_rndne_f32", "v_rndne_f64"),
        "the pseudocode adds a half, which rounds, and loses the sign of zero",
    ),
    **dict.fromkeys(
        ("v_fract_f16", "v_fract_f32", "v_fract_f64"),
        "the pseudocode gives 1 for tiny negative numbers; the result stays below 1",
    ),
    **dict.fromkeys(
        ("v_frexp_exp_i16_f16", "v_frexp_exp_i32_f32", "v_frexp_exp_i32_f64"),
        "the pseudocode reads the exponent field, which denormals and zero do not have",
    ),
    **dict.fromkeys(
        ("v_sin_f16", "v_sin_f32", "v_cos_f16", "v_cos_f32"),
        "the pseudocode is silent on numbers beyond 256 turns",
    ),
    **dict.fromkeys(
        ("v_ldexp_f16", "v_ldexp_f32", "v_ldexp_f64"),
        "the pseudocode computes the power of two first, which overflows",
    ),
    **dict.fromkeys(
        (
            *("v_cvt_f32_fp8", "v_cvt_f32_bf8", "v_cvt_pk_f32_fp8", "v_cvt_pk_f32_bf8"),
            *("v_cvt_pk_fp8_f32", "v_cvt_pk_bf8_f32", "v_cvt_sr_fp8_f32", "v_cvt_sr_bf8_f32"),
        ),
        "the pseudocode names conversions of 8-bit floats without giving them",
    ),
    "v_trig_preop_f64": "the pseudocode names 2/pi to 1201 bits without giving them",
}
LANES_DIFFER = {
    **dict.fromkeys(
        ("v_div_fixup_f32", "v_div_fixup_f64"),
        "a NaN as the quotient so far, which overflow leaves behind, becomes infinity",
    ),
    **dict.fromkeys(
        ("v_div_fmas_f32", "v_div_fmas_f64"),
        "where VCC asks for scaling, the factor is that of v_div_scale; whole divisions check it",
    ),
    "v_div_scale_f32": "whether 1/b is denormal the pseudocode asks in f64, where it never is",
    **dict.fromkeys(
        ("v_dot2_f32_f16", "v_dot2c_f32_f16"),
        "gfx90a takes denormals for zero, as AMD says of its V_DOT2; whole kernels check it",
    ),
    **dict.fromkeys(
        (
            *("v_min_f64", "v_max_f64", "v_min_f16", "v_max_f16", "v_min3_f16", "v_max3_f16"),
            *("v_med3_f16", "v_pk_min_f16", "v_pk_max_f16", "v_min_f32", "v_max_f32"),
            *("v_min3_f32", "v_max3_f32", "v_med3_f32"),
        ),
        "of two zeros the pseudocode takes the second",
    ),
}
OUTSIDE = (  # families that depend on the place in the code, or on register numbers
    *("s_getpc_b64", "s_setpc_b64", "s_swappc_b64", "s_call_b64", "s_getreg_b32", "s_setreg_b32"),
    *("s_setreg_imm32_b32", "s_movrels_b32", "s_movrels_b64", "s_movreld_b32", "s_movreld_b64"),
    *("s_set_gpr_idx_idx", "s_set_gpr_idx_on"),
)
CONSTANTS = (0, 1, 0x7FFF, 0x8000, 0xFFFF, 0x1234)  # for SOPK instructions
LITERALS = {"F16": 0x4248, "F32": 0x40490FDB}  # for v_madmk and v_madak


@dataclass(frozen=True)
class Case:
    """An instruction in its own kernel; `constant` is the constant of a SOPK instruction."""

    name: str
    row: Row
    text: str
    constant: int = 0

    @property
    def dst(self) -> str:
        return self.row.rest[0]

    @property
    def result(self) -> str:
        """Returns the type in which the test compares the result: a float type for floats, and bits
        for most other types."""
        kind = RESULTS.get(self.name, self.dst.lower())
        return (
            kind
            if self.name in RESULTS or kind[0] == "f" or kind[:2] == "pf"
            else f"b{width_of(self.dst)}"
        )

    @property
    def sources(self) -> tuple[str, ...]:
        if self.row.family in VECTOR:
            return tuple(kind for kind in self.row.rest[1:4] if kind != "NONE")
        return tuple(kind for kind in self.row.rest[1:3] if kind != "NONE")

    @property
    def kinds(self) -> list[str]:
        """Returns the kinds of the random operands."""
        return [KINDS.get(kind, kind.lower()) for kind in self.sources]


def width_of(kind: str) -> int:
    """Returns how many bits a type of the tables has."""
    if kind in TWO:
        return 64
    return 128 if kind == "B128" else 16 if kind in ("B16", "I16", "U16", "F16") else 32


def register(file: str, number: int, kind: str) -> str:
    count = 4 if kind == "B128" else 2 if kind in TWO else 1
    return f"{file}{number}" if count == 1 else f"{file}[{number}:{number + count - 1}]"


def vector_case(row: Row) -> Case:
    dst, flags = row.rest[0], row.rest[4]
    words = ["vcc" if dst == "MASK" else register("s" if dst == "SDST" else "v", 14, dst)]
    if dst == "SDST":
        words = ["s24"]
    words += ["vcc"] * ("CARRY_OUT" in flags)
    sources = row.rest[1:3] if "ACC" in flags else row.rest[1:4]
    for number, kind in zip(SOURCES, sources, strict=False):
        if kind == "MASK":
            words.append("vcc")
        elif kind == "SLANE":
            words.append("s20" if number == 2 else "s22")
        elif kind != "NONE":
            words.append(register("v", number, kind))
    if "LITK" in flags:
        constant = LITERALS[dst]
        words[2 if row.name[3:] in ("admk_f16", "admk_f32", "mamk_f32") else 3 :] = [
            f"{constant:#x}"
        ]
        if row.name[3:] in ("admk_f16", "admk_f32", "mamk_f32"):
            words.append("v6")
        return Case(row.name, row, f"{row.name} {', '.join(words)}", constant)
    return Case(row.name, row, f"{row.name} {', '.join(words)}")


def scalar_cases(row: Row) -> list[Case]:
    dst, *sources = row.rest[:3]
    if row.family == "sopk":
        return [
            Case(f"{row.name}_{n}", row, f"{row.name} s24, {constant:#x}", constant)
            for n, constant in enumerate(CONSTANTS)
        ]
    words = [] if dst == "NONE" else [register("s", 24, dst)]
    words += [register("s", n, k) for n, k in zip((20, 22), sources, strict=True) if k != "NONE"]
    return [Case(row.name, row, f"{row.name} {', '.join(words)}")]


def checkable(row: Row) -> bool:
    """Returns whether the row is an implemented arithmetic instruction with reliable pseudocode."""
    return (
        row.family in VECTOR + SCALAR
        and row.meaning != "NULL"
        and row.name in texts()
        and row.name not in DIFFERS
        and row.name not in OUTSIDE
    )


def all_cases(target: str) -> Iterator[Case]:
    for row in rows():
        if target in row.targets and checkable(row):
            yield from [vector_case(row)] if row.family in VECTOR else scalar_cases(row)


def expected_scalar(case: Case, wave: Wave) -> Result:
    """Returns the wave's state after a scalar instruction."""
    old, first = wave.scalars[2], wave.scalars[0]
    if case.row.family == "sopk":
        first = case.constant if case.dst != "NONE" else old
    names = {
        "S0": Value("b", 64, first),
        "S1": Value("b", 64, wave.scalars[1]),
        "D0": Value("b", 64, old),
        "SIMM16": Value("b", 16, case.constant),
        "SCC": Value("u", 1, wave.scc),
        "EXEC": Value("u", 64, wave.exec),
        "VCC": Value("u", 64, wave.vcc),
    }
    after = evaluate(case.row.name, names)
    low = 0 if case.dst == "NONE" else (1 << (64 if case.dst in TWO else 32)) - 1
    scalar = after["D0"].bits & low | old & ~low
    lanes = [lane[3] for lane in wave.lanes]
    scc = int(bool(after["SCC"]))
    return Result(after["EXEC"].bits, after["VCC"].bits, scc, scalar, lanes)


def expected_vector(case: Case, wave: Wave) -> Result:
    """Returns the wave's state after a vector instruction, computed lane by lane. An inactive lane
    preserves its value; if the instruction writes a mask, the bits of inactive lanes become 0."""
    row, flags = case.row, case.row.rest[4]
    masks = row.family == "vopc"
    vcc = Value("u", 64, wave.vcc)
    out = Value("u", 64, 0)
    exec_ = Value("u", 64, wave.exec)
    lanes = [lane[3] for lane in wave.lanes]
    for n in range(LANES):
        if not wave.exec >> n & 1:
            continue
        names = {f"S{i}": Value("b", 64, wave.lanes[n][i]) for i in range(3)}
        if "B128" in case.sources:  # the four registers from the third source on
            names["S2"] = Value("b", 128, wave.lanes[n][2])
        old = names["S0"].bits if row.name.startswith("v_div_scale") else lanes[n]
        names |= {
            "D0": out if masks else Value("b", 128, old),
            "D1": Value("b", 64, 0),
            "SIMM16": Value("b", 16, case.constant),
            "SIMM32": Value("b", 32, case.constant),
            "VCC": vcc.copy(),
            "EXEC": exec_,
            "SCC": Value("u", 1, wave.scc),
            "laneId": Value("u", 32, n),
        }
        after = evaluate(row.name, names)
        if not masks:
            lanes[n] = after["D0"].bits
        if "CARRY_OUT" in flags:
            out.write(n, 1, carry(row.name, after, n))
    written = masks or "CARRY_OUT" in flags
    after_exec = out.bits if "CMPX" in flags else wave.exec
    return Result(after_exec, out.bits if written else wave.vcc, wave.scc, wave.scalars[2], lanes)


def differs(case: Case, wave: Wave, lane: int) -> bool:
    """Returns whether LANES_DIFFER excludes this lane from the comparison."""
    if case.row.name not in LANES_DIFFER:
        return False
    if case.row.name.startswith("v_div_fmas"):
        return bool(wave.vcc >> lane & 1)
    if case.row.name == "v_div_scale_f32":
        return (wave.lanes[lane][1] >> 23 & 0xFF) >= 253
    if case.row.name.startswith("v_dot2"):
        a, b, c = wave.lanes[lane][:3]
        halves = (a & 0xFFFF, a >> 16 & 0xFFFF, b & 0xFFFF, b >> 16 & 0xFFFF)
        return not c & 0x7F800000 or not all(half & 0x7C00 for half in halves)
    kind = case.dst.lower()
    if case.row.name.startswith("v_div_fixup"):
        return math.isnan(decode(kind, wave.lanes[lane][0]))
    count = len(case.sources)
    if kind == "pf16":
        halves = [[x >> at for x in wave.lanes[lane][:2]] for at in (0, 16)]
        return any(all(decode("f16", x) == 0 for x in half) for half in halves)
    return [decode(kind, x) for x in wave.lanes[lane][:count]].count(0) > 1


def carry(name: str, after: dict[str, Value], lane: int) -> int:
    if name.startswith("v_div_scale"):  # the pseudocode writes VCC as one lane's bit
        return after["VCC"].bits & 1
    if name.startswith("v_mad_"):
        return after["D1"].bits & 1
    return after["VCC"].bits >> lane & 1
