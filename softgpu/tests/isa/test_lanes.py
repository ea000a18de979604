"""Tests instructions that move values between lanes or registers, and operand modifiers."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from . import oracle as o
from .device import TARGETS, on_targets
from .single import LANES, Batch, Result, Wave, random_waves
from .test_instructions import seeded
from .values import Value

pytestmark = pytest.mark.check

LOW = 0xFFFFFFFF
Expected = Callable[[Wave], list[int]]  # the destinations of all lanes, 32 bits each


def running(wave: Wave, lane: int) -> bool:
    return bool(wave.exec >> lane & 1)


def column(wave: Wave, source: int) -> list[int]:
    return [lane[source] & LOW for lane in wave.lanes]


def masked(wave: Wave, results: list[int]) -> list[int]:
    """Returns the results of active lanes, and the old destination of inactive lanes."""
    old = column(wave, 3)
    return [results[n] & LOW if running(wave, n) else old[n] for n in range(LANES)]


def run_all(
    target: str,
    cases: dict[str, tuple[str, str, Expected]],
    tame: Callable[[int], int] = lambda bits: bits,
) -> None:
    """Runs cases of instruction text, setup, and expected lanes, and checks that EXEC, VCC and SCC
    do not change. Operands are random values, modified by `tame`."""
    batch = Batch(target)
    names = {text: f"case_{n}" for n, text in enumerate(cases)}
    for key, (text, setup, _) in cases.items():
        batch.add(names[key], text, setup)
    code = batch.load()
    wrong = []
    for key, (_, _, expected) in cases.items():
        waves = random_waves(seeded(key), ["b32", "b32", "b32"])
        for wave in waves:
            wave.lanes = [(*map(tame, lane[:3]), lane[3]) for lane in wave.lanes]  # type: ignore[misc]
        for wave, result in zip(waves, code.run(names[key], waves), strict=True):
            want, got = expected(wave), [lane & LOW for lane in result.lanes]
            bad = [n for n in range(LANES) if got[n] != want[n]]
            if bad or not undisturbed(wave, result):
                shown = [(n, hex(got[n]), hex(want[n])) for n in bad[:4]]
                wrong.append(f"{key}: {shown} exec {wave.exec:#x}")
                break
    assert not wrong, "\n".join([f"{len(wrong)} of {len(cases)}", *wrong[:12]])


def undisturbed(wave: Wave, result: Result) -> bool:
    return (result.exec, result.vcc, result.scc) == (wave.exec, wave.vcc, wave.scc)


# Each function below returns a mapping from lane n to the lane that lane n reads by DPP, or to
# None. The mappings follow LLVM's AMDGPU guide.
def quad(pattern: tuple[int, int, int, int]) -> Callable[[int], int | None]:
    return lambda n: n & ~3 | pattern[n & 3]


def within_row(move: Callable[[int], int]) -> Callable[[int], int | None]:
    return lambda n: n & ~15 | move(n & 15) if 0 <= move(n & 15) < 16 else None


def within_wave(move: Callable[[int], int]) -> Callable[[int], int | None]:
    return lambda n: move(n) if 0 <= move(n) < LANES else None


DPP = {
    "quad_perm:[3,1,0,2]": quad((3, 1, 0, 2)),
    "quad_perm:[1,1,1,1]": quad((1, 1, 1, 1)),
    "row_shl:1": within_row(lambda n: n + 1),
    "row_shl:15": within_row(lambda n: n + 15),
    "row_shr:1": within_row(lambda n: n - 1),
    "row_shr:8": within_row(lambda n: n - 8),
    "row_ror:5": within_row(lambda n: (n - 5) % 16),
    "wave_shl:1": within_wave(lambda n: n + 1),
    "wave_rol:1": within_wave(lambda n: (n + 1) % LANES),
    "wave_shr:1": within_wave(lambda n: n - 1),
    "wave_ror:1": within_wave(lambda n: (n - 1) % LANES),
    "row_mirror": within_row(lambda n: 15 - n),
    "row_half_mirror": within_row(lambda n: n & 8 | 7 - (n & 7)),
    "row_bcast:15": lambda n: (n & ~15) - 1 if n >= 16 else None,
    "row_bcast:31": lambda n: 31 if n >= 32 else None,
    "row_newbcast:6": within_row(lambda n: 6),
}


def dpp(control: str, rows: int, banks: int, bound: bool) -> Expected:
    def expected(wave: Wave) -> list[int]:
        a, b, old = column(wave, 0), column(wave, 1), column(wave, 3)
        results = list(old)
        for n in range(LANES):
            source = DPP[control](n)
            valid = source is not None and running(wave, source)
            enabled = rows >> (n // 16) & 1 and banks >> (n // 4 % 4) & 1
            if enabled and (valid or bound):
                results[n] = (a[source] if valid else 0) + b[n]  # type: ignore[index]
        return masked(wave, results)

    return expected


@on_targets(*TARGETS, seldom=("gfx906", "gfx908", "gfx942"))
def test_dpp_moves_between_lanes(target: str) -> None:
    cases = {}
    controls = [c for c in DPP if target == "gfx90a" or "newbcast" not in c]
    for control in controls:
        for rows, banks, bound in ((15, 15, False), (15, 15, True), (10, 15, True), (15, 6, False)):
            words = f"{control} row_mask:{rows:#x} bank_mask:{banks:#x}" + " bound_ctrl:0" * bound
            text = f"v_add_u32_dpp v14, v2, v6 {words}"
            cases[text] = (text, "", dpp(control, rows, banks, bound))
    run_all(target, cases)


def floats(apply: Callable[[list[float]], o.Number], kind: str = "f32") -> Expected:
    def expected(wave: Wave) -> list[int]:
        results = []
        for lane in wave.lanes:
            number = apply([o.decode(kind, lane[n]) for n in range(3)])
            results.append(o.encode(kind, number))
        return masked(wave, results)

    return expected


def rounded(number: o.Number) -> float:
    return float(o.decode("f32", o.encode("f32", number)))


def finite(bits: int) -> int:
    """Replaces NaN and infinity by a finite number, because the bits of a NaN result are specific
    to the hardware."""
    number = o.decode("f32", bits)
    return bits if math.isfinite(number) else 0x3FC00000


def mixed(low: str, high: str, part: str) -> Expected:
    """Computes v_fma_mix: each source is an f32, or a selected f16 half of a register."""
    select, is_half = ([int(x) for x in bits.split(",")] for bits in (low, high))

    def expected(wave: Wave) -> list[int]:
        results = []
        for lane in wave.lanes:
            x = [
                o.decode("f16", lane[n] >> 16 * select[n])
                if is_half[n]
                else o.decode("f32", lane[n])
                for n in range(3)
            ]
            total = o.fma(*x)
            half, old = o.encode("f16", rounded(total)), lane[3]
            results.append(
                {
                    "mix_f32": o.encode("f32", total),
                    "mixlo_f16": half | old & 0xFFFF0000,
                    "mixhi_f16": half << 16 | old & 0xFFFF,
                }[part]
            )
        return masked(wave, results)

    return expected


def test_mixed_precision_is_computed() -> None:
    cases = {}
    for part in ("mix_f32", "mixlo_f16", "mixhi_f16"):
        for low, high in (("0,0,0", "0,0,0"), ("0,1,0", "1,1,0"), ("1,0,1", "1,0,1")):
            text = f"v_fma_{part} v14, v2, v6, v10 op_sel:[{low}] op_sel_hi:[{high}]"
            cases[text] = (text, "", mixed(low, high, part))
    run_all("gfx90a", cases, ordinary)


def ordinary(bits: int) -> int:
    """Returns bits whose two 16-bit halves are f16 numbers with magnitudes from 1/8 to 1/2."""
    return bits & 0xB7FFB7FF | 0x30003000


# Instructions that exchange values between lanes by lane number, through the crossbar of the
# workgroup memory.
def bpermute(offset: int) -> Expected:
    def expected(wave: Wave) -> list[int]:
        address, data = column(wave, 0), column(wave, 1)
        sources = [(address[n] + offset) // 4 % LANES for n in range(LANES)]
        return masked(wave, [data[s] if running(wave, s) else 0 for s in sources])

    return expected


def permute(wave: Wave) -> list[int]:
    address, data, results = column(wave, 0), column(wave, 1), [0] * LANES
    for n in range(LANES):
        if running(wave, n):
            results[address[n] // 4 % LANES] = data[n]
    return masked(wave, results)


def swizzle(source: Callable[[int], int]) -> Expected:
    def expected(wave: Wave) -> list[int]:
        data = column(wave, 0)
        return masked(
            wave, [data[source(n)] if running(wave, source(n)) else 0 for n in range(LANES)]
        )

    return expected


def first_lane(wave: Wave) -> int:
    return (wave.exec & -wave.exec).bit_length() - 1 if wave.exec else 0


def shown(scalar: Callable[[Wave], int]) -> Expected:
    """Returns the expected lanes for a test that copies its scalar result to every lane."""
    return lambda wave: masked(wave, [scalar(wave)] * LANES)


def write_lane(wave: Wave) -> list[int]:
    results = column(wave, 3)
    results[wave.scalars[1] & 63] = wave.scalars[0] & LOW
    return results


def test_lanes_are_read_and_written_by_number() -> None:
    cases: dict[str, tuple[str, str, Expected]] = {}

    def add(text: str, expected: Expected, setup: str = "") -> None:
        cases[text] = (text, setup, expected)

    add("ds_bpermute_b32 v14, v2, v6", bpermute(0))
    add("ds_bpermute_b32 v14, v2, v6 offset:12", bpermute(12))
    add("ds_permute_b32 v14, v2, v6", permute)
    reverse = swizzle(lambda n: n ^ 31)
    add("ds_swizzle_b32 v14, v2 offset:swizzle(REVERSE,32)", reverse)
    add("ds_swizzle_b32 v14, v2 offset:swizzle(SWAP,8)", swizzle(lambda n: n ^ 8))
    add("ds_swizzle_b32 v14, v2 offset:swizzle(BROADCAST,16,5)", swizzle(lambda n: n & 48 | 5))
    quads = swizzle(lambda n: n & ~3 | (2, 0, 3, 1)[n & 3])
    add("ds_swizzle_b32 v14, v2 offset:swizzle(QUAD_PERM,2,0,3,1)", quads)
    first = shown(lambda wave: column(wave, 0)[first_lane(wave)])
    add("v_readfirstlane_b32 s34, v2\nv_mov_b32 v14, s34", first)
    by_number = shown(lambda wave: column(wave, 0)[wave.scalars[1] & 63])
    add("v_readlane_b32 s34, v2, s22\nv_mov_b32 v14, s34", by_number)
    add("v_writelane_b32 v14, s20, m0", write_lane, "s_mov_b32 m0, s22")
    add("v_swap_b32 v2, v14", lambda wave: masked(wave, column(wave, 0)))
    add("v_swap_b32 v14, v2\nv_mov_b32 v14, v2", lambda wave: column(wave, 3))
    run_all("gfx90a", cases)


def test_accumulation_registers_hold_values() -> None:
    through = "v_accvgpr_write_b32 a5, v2\nv_accvgpr_mov_b32 a7, a5\nv_accvgpr_read_b32 v14, a7"
    run_all("gfx90a", {through: (through, "", lambda wave: masked(wave, column(wave, 0)))})


# Relative register moves: M0 is added to an operand's register number.
#: Sets v20 to v22 to three known values.
RELATIVE = "v_mov_b32 v20, v2\nv_mov_b32 v21, v6\nv_mov_b32 v22, v10\n"


def test_relative_registers_are_found_by_m0() -> None:
    cases: dict[str, tuple[str, str, Expected]] = {}
    for n in range(3):
        on = f"s_mov_b32 s34, {n}\ns_set_gpr_idx_on s34, gpr_idx"
        off = "s_set_gpr_idx_off"

        def source(wave: Wave, n: int = n) -> list[int]:
            return masked(wave, column(wave, n))

        def destination(wave: Wave, n: int = n) -> list[int]:
            olds = [column(wave, k) for k in range(3)]
            olds[n] = [w + 7 for w in olds[0]]
            return masked(wave, [sum(c) for c in zip(*olds, strict=True)])

        move = f"{on}(SRC0)\nv_mov_b32 v14, v20\n{off}"
        cases[move] = (move, RELATIVE, source)
        moved = (
            f"{on}(DST)\nv_add_u32 v20, 7, v2\n{off}\n"
            "v_add_u32 v14, v20, v21\nv_add_u32 v14, v14, v22"
        )
        cases[moved] = (moved, RELATIVE, destination)
        later = (
            "s_mov_b32 s34, 0\ns_set_gpr_idx_on s34, gpr_idx(SRC1)\n"
            f"s_set_gpr_idx_mode gpr_idx(SRC0)\ns_mov_b32 s34, {n}\ns_set_gpr_idx_idx s34\n"
            f"v_mov_b32 v14, v20\n{off}"
        )
        cases[later] = (later, RELATIVE, source)
        scalars = f"s_mov_b32 s40, 11\ns_mov_b32 s41, 22\ns_mov_b32 s42, 33\ns_mov_b32 m0, {n}\n"
        read = "s_movrels_b32 s34, s40\nv_mov_b32 v14, s34"
        cases[scalars + read] = (scalars + read, "", shown(lambda wave, n=n: 11 * (n + 1)))
        write = "s_movreld_b32 s40, 5\ns_add_u32 s34, s40, s41\ns_cmp_lg_u32 s26, 0\n"
        text = scalars + write + "v_mov_b32 v14, s34"
        total = {0: 5 + 22, 1: 11 + 5, 2: 33}[n]
        cases[text] = (text, "", shown(lambda wave, total=total: total))
    run_all("gfx90a", cases)


def test_relative_pairs_of_scalars_may_overlap() -> None:
    """Each digit of the result shows the value of one register. With M0 = 1, the register pair that
    M0 selects overlaps the pair that the instruction names."""
    numbers = "\n".join(f"s_mov_b32 s{40 + n}, {n + 1}" for n in range(4))
    digits = ["s_mov_b32 s38, 0"]
    for n in range(4):
        digits += ["s_mul_i32 s38, s38, 10", f"s_add_u32 s38, s38, s{40 + n}"]
    shows = "\n".join([*digits, "s_cmp_lg_u32 s26, 0", "v_mov_b32 v14, s38"])
    writes = {0: 7834, 1: 1784, 2: 1278}
    cases: dict[str, tuple[str, str, Expected]] = {}
    for n, written in writes.items():
        setup = f"{numbers}\ns_mov_b32 m0, {n}\ns_mov_b32 s36, 7\ns_mov_b32 s37, 8"
        read = f"s_movrels_b64 s[40:41], s[40:41]\n{shows}"
        of_both = 1000 * (n + 1) + 100 * (n + 2) + 34
        cases[f"{n} read"] = (read, setup, shown(lambda wave, value=of_both: value))
        write = f"s_movreld_b64 s[40:41], s[36:37]\n{shows}"
        cases[f"{n} write"] = (write, setup, shown(lambda wave, value=written: value))
    run_all("gfx90a", cases)


def test_hardware_registers_are_read_and_written() -> None:
    """Tests the bits of MODE that the kernel's descriptor sets (keep denormals, IEEE, DX10 clamp),
    and the rounding bits after the kernel has written MODE."""
    mode = 0xF0 | 1 << 8 | 1 << 9
    read = "s_getreg_b32 s34, hwreg(HW_REG_MODE, 0, 10)\nv_mov_b32 v14, s34"
    field = "s_getreg_b32 s34, hwreg(HW_REG_MODE, 4, 4)\nv_mov_b32 v14, s34"
    write = f"s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 9\n{read}"
    register = f"s_mov_b32 s35, 3\ns_setreg_b32 hwreg(HW_REG_MODE, 2, 2), s35\n{read}"
    expected = {read: mode, field: 15, write: mode | 9, register: mode | 12}
    cases = {
        text: (text, "", shown(lambda wave, value=value: value)) for text, value in expected.items()
    }
    run_all("gfx90a", cases)


def test_sums_round_in_each_direction() -> None:
    """Tests f32 additions in the four rounding modes of MODE."""
    cases = {}
    for number, towards in enumerate((0, 1, -1, None)):
        add = f"s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), {number}\nv_add_f32 v14, v2, v6"
        cases[add] = (add, "", floats(lambda x, t=towards: directed(x[0], x[1], t)))
    run_all("gfx90a", cases, ordinary)


def directed(a: float, b: float, towards: int | None) -> o.Number:
    """Rounds the exact sum down (-1), up (1), to nearest (0) or toward zero (None)."""
    exact = o.add(a, b)
    nearest = rounded(exact)
    if exact == 0 and a != 0 and towards == -1:
        return -0.0
    if towards == 0 or nearest == exact:
        return exact
    up = towards == 1 or (towards is None and exact < 0)
    if (nearest > exact) == up:
        return nearest
    bits = o.encode("f32", nearest)
    away = (bits >> 31 == 0) == up
    return float(o.decode("f32", Value("u", 32, bits + (1 if away else -1)).bits))
