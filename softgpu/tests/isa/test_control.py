"""Tests branches, calls, and instructions that end or stop a wave."""

from __future__ import annotations

import pytest

from . import oracle as o
from .device import TARGETS, on_targets
from .single import LANES, Batch, Wave, random_waves
from .test_instructions import seeded
from .test_lanes import finite, floats, rounded, run_all, shown

pytestmark = pytest.mark.check

CONDITIONS = {
    "s_branch": lambda wave: True,
    "s_cbranch_scc0": lambda wave: not wave.scc,
    "s_cbranch_scc1": lambda wave: wave.scc,
    "s_cbranch_vccz": lambda wave: not wave.vcc,
    "s_cbranch_vccnz": lambda wave: wave.vcc,
    "s_cbranch_execz": lambda wave: not wave.exec,
    "s_cbranch_execnz": lambda wave: wave.exec,
}
# An emulated device has neither debuggers nor interrupts.
NOT_TAKEN = (
    *("s_cbranch_cdbgsys", "s_cbranch_cdbguser"),
    *("s_cbranch_cdbgsys_or_user", "s_cbranch_cdbgsys_and_user"),
)
HINTS = (
    *("s_nop 3", "s_wakeup", "s_waitcnt 0", "s_sleep 1", "s_setprio 2", "s_icache_inv"),
    *("s_incperflevel 1", "s_decperflevel 1", "s_ttracedata", "s_sethalt 0", "s_trap 3"),
    *("s_sendmsg sendmsg(MSG_INTERRUPT)", "v_nop", "v_clrexcp", "ds_nop"),
    *("s_dcache_inv", "s_dcache_wb", "s_dcache_inv_vol", "s_dcache_wb_vol"),
    *("s_dcache_discard s[8:9], 0", "s_dcache_discard_x2 s[8:9], 0", "s_barrier"),
    *("s_atc_probe 1, s[8:9], 0", "s_atc_probe_buffer 1, s[8:11], 0"),
)
HINTS_OF_OLDER = ("buffer_wbinvl1", "buffer_wbinvl1_vol")
HINTS_OF = {
    "gfx90a": (*HINTS_OF_OLDER, "buffer_wbl2", "buffer_invl2"),
    "gfx942": ("buffer_wbl2 sc0 sc1", "buffer_inv sc0 sc1"),
}


def test_branches_are_taken_on_their_conditions() -> None:
    cases = {}
    for name, taken in {**CONDITIONS, **dict.fromkeys(NOT_TAKEN, lambda wave: False)}.items():
        for vcc in ("s_mov_b64 vcc, 0", ""):
            label = f"taken_{len(cases)}"
            text = (
                f"s_mov_b32 s34, 5\n{name} {label}\ns_mov_b32 s34, 6\n{label}:\nv_mov_b32 v14, s34"
            )

            def expected(wave: Wave, taken: object = taken, vcc: str = vcc) -> int:
                if vcc:
                    wave.vcc = 0
                return 5 if taken(wave) else 6  # type: ignore[operator]

            cases[text] = (text, vcc, shown(expected))
    run_all("gfx90a", cases)


def test_calls_come_back() -> None:
    call = (
        "s_call_b64 s[34:35], called\ns_branch back\n"
        "called: s_mov_b32 s36, 7\ns_setpc_b64 s[34:35]\nback: v_mov_b32 v14, s36"
    )
    swap = (
        "s_getpc_b64 s[40:41]\nhere: s_add_u32 s40, s40, swapped - here\ns_addc_u32 s41, s41, 0\n"
        "s_swappc_b64 s[34:35], s[40:41]\ns_branch after\n"
        "swapped: s_mov_b32 s36, 8\ns_setpc_b64 s[34:35]\n"
        "after: s_cmp_lg_u32 s26, 0\nv_mov_b32 v14, s36"
    )
    run_all(
        "gfx90a",
        {"call": (call, "", shown(lambda w: 7)), "swap": (swap, "", shown(lambda w: 8))},
    )


def test_a_kernel_may_have_any_number_of_functions() -> None:
    """Calls 300 functions, because an unoptimised C program may contain hundreds of functions."""
    count = 300
    calls = [
        f"s_getpc_b64 s[40:41]\nhere_{n}: s_add_u32 s40, s40, function_{n} - here_{n}\n"
        "s_addc_u32 s41, s41, 0\ns_swappc_b64 s[34:35], s[40:41]"
        for n in range(count)
    ]
    functions = [
        f"function_{n}: s_add_u32 s36, s36, {n}\ns_setpc_b64 s[34:35]" for n in range(count)
    ]
    text = "\n".join(["s_mov_b32 s36, 0", *calls, "s_branch after_all", *functions])
    end = "after_all: s_cmp_lg_u32 s26, 0\nv_mov_b32 v14, s36"
    total = count * (count - 1) // 2
    run_all("gfx90a", {"calls": (f"{text}\n{end}", "", shown(lambda w: total))})


@on_targets(*TARGETS)
def test_hints_change_nothing(target: str) -> None:
    hints = HINTS + HINTS_OF.get(target, HINTS_OF_OLDER)
    unchanged = {
        hint: (hint, "", lambda wave: [lane[3] & 0xFFFFFFFF for lane in wave.lanes])
        for hint in hints
    }
    run_all(target, unchanged)


@pytest.mark.parametrize("end", ("s_endpgm", "s_endpgm_saved"))
def test_nothing_happens_after_the_end_of_a_wave(end: str) -> None:
    """Checks that instructions before the wave's end take effect, and that later instructions have
    no effect."""
    batch = Batch("gfx90a")
    batch.add("ends", f"global_store_dword v1, v0, s[10:11]\n{end}", "v_lshlrev_b32 v1, 4, v0")
    code = batch.load()
    code.output.write(b"\xa5" * code.output.size)
    (result,) = code.run("ends", random_waves(seeded(end), ["b32"], 1))
    untouched = 0xA5A5A5A5
    assert result.lanes == [n | sum(untouched << 32 * k for k in (1, 2, 3)) for n in range(LANES)]
    assert result.exec == untouched << 32 | untouched


def test_constants_in_the_instruction_are_read() -> None:
    pi = o.decode("f32", 0x40490FDB)
    cases = {
        "v_madmk_f32 v14, v2, 0x40490fdb, v6": floats(
            lambda x: o.add(rounded(o.mul(x[0], pi)), x[1])
        ),
        "v_madak_f32 v14, v2, v6, 0x40490fdb": floats(
            lambda x: o.add(rounded(o.mul(x[0], x[1])), pi)
        ),
    }
    run_all("gfx90a", {text: (text, "", e) for text, e in cases.items()}, finite)


def test_clocks_go_on() -> None:
    clocks = "s_memtime s[34:35]\ns_memtime s[36:37]\ns_memrealtime s[38:39]"
    text = f"{clocks}\nv_mov_b32 v14, s34\nv_mov_b32 v15, s36"
    batch = Batch("gfx90a")
    batch.add("clock", text)
    waves = random_waves(seeded("clock"), ["b32"], 1)
    (result,) = batch.load().run("clock", waves)
    assert all((lane >> 32) - lane & 0xFFFFFFFF < 1 << 30 for lane in result.lanes)
