"""A wave stops at encodings that the ISA reserves, and at combinations whose effect is unknown."""

from __future__ import annotations

import random

import pytest

from .device import Fault
from .single import Batch, random_waves, stopped_by
from .test_faults import fault_of

pytestmark = pytest.mark.check

#: First dwords of instructions: v_add_u32 v14, v2, v6 in SDWA form and in DPP form, and v_ceil_f64
#: v[14:15], v[2:3] in DPP form.
SDWA, DPP, WIDE_DPP = 0x681C0CF9, 0x681C0CFA, 0x7E1C30FA
CONTROLS = (0x100, 0x110, 0x120, 0x131, 0x139, 0x144, 0x14F, 0x160, 0x1FF)
RESERVED = {
    "dst_sel 7": (SDWA, 0x06060702),
    "dst_unused 3": (SDWA, 0x06061E02),
    "src0_sel 7": (SDWA, 0x06070602),
    "src1_sel 7": (SDWA, 0x07060602),
    **{f"dpp_ctrl {control:#x}": (DPP, 0xFF000002 | control << 8) for control in CONTROLS},
    "quad_perm of 64 bits": (WIDE_DPP, 0xFF000002),
}
#: instructions for which AMD's documents do not describe the effect of clamp
CLAMPED = (
    *("v_mul_i32_i24_e64 v14, v2, v6", "v_mul_u32_u24_e64 v14, v2, v6"),
    *("v_sad_u8 v14, v2, v6, v10", "v_sad_hi_u8 v14, v2, v6, v10", "v_sad_u16 v14, v2, v6, v10"),
    *("v_sad_u32 v14, v2, v6, v10", "v_msad_u8 v14, v2, v6, v10"),
    *("v_qsad_pk_u16_u8 v[14:15], v[2:3], v6, v[10:11]",),
    *("v_mqsad_pk_u16_u8 v[14:15], v[2:3], v6, v[10:11]",),
    *("v_mqsad_u32_u8 v[14:17], v[2:3], v6, v[10:13]",),
    *("v_mad_u64_u32 v[14:15], vcc, v2, v6, v[10:11]",),
    *("v_mad_i64_i32 v[14:15], vcc, v2, v6, v[10:11]", "v_pk_mul_lo_u16 v14, v2, v6"),
)


REGISTERS = "v[14:17], v[2:3], v[4:7], v8"
#: for each target, instructions and a part of the fault's message; gfx906 has global data share
STOPS = {
    "gfx906": {
        "s_trap 2": "the kernel called trap",
        "s_trap 7": "trap 7 has no handler",
        "s_sethalt 1": "the wave halts itself",
        "s_sendmsg sendmsg(MSG_GS_DONE, GS_OP_NOP)": "message 3 is not emulated",
        "s_getreg_b32 s34, hwreg(20)": "hardware register 20 is not emulated",
        "s_setreg_b32 hwreg(HW_REG_HW_ID), s34": "hardware register 4 cannot be written",
        "s_setpc_b64 s[20:21]": "where no code is",
        "ds_swizzle_b32 v14, v2 offset:swizzle(FFT,3)": "FFT patterns of ds_swizzle are",
        "ds_add_u32 v2, v6 gds": "global data share is not emulated",
    },
    "gfx90a": {
        "v_mfma_f64_4x4x4f64 v[14:15], v[2:3], v[6:7], 0 blgp:1": "f64 matrices have no cbsz",
        "v_mfma_f64_4x4x4f64 v[14:15], v[2:3], v[6:7], 0 cbsz:1": "f64 matrices have no cbsz",
        "v_mfma_f64_16x16x4f64 v[14:21], v[2:3], v[6:7], 0 abid:1": "f64 matrices have no cbsz",
        "v_mfma_f32_4x4x1f32 v[14:17], v2, v6, 0 cbsz:5": "cbsz asks for more blocks",
        "v_mfma_f32_16x16x4f32 v[14:17], v2, v6, 0 cbsz:1 abid:1": "cbsz asks for more blocks",
        "v_mfma_f32_4x4x1f32 v[14:17], v2, v6, 0 cbsz:2 abid:4": "abid is not among the blocks",
        "v_mfma_f32_4x4x1f32 v[14:17], v2, v6, 0 abid:1": "abid is not among the blocks",
    },
    "gfx942": {
        f"v_smfmac_f32_16x16x32_f16 {REGISTERS} cbsz:4": "no cbsz beyond 3",
        f"v_smfmac_f32_16x16x32_f16 {REGISTERS} abid:4": "abid asks for more indices",
        f"v_smfmac_i32_16x16x64_i8 {REGISTERS} abid:2": "abid asks for more indices",
        f"v_smfmac_f32_16x16x64_fp8_bf8 {REGISTERS} cbsz:1 abid:2": "abid asks for more indices",
    },
}


@pytest.mark.parametrize("name", RESERVED)
def test_reserved_encodings_fault(name: str) -> None:
    text = ".long " + ", ".join(f"{word:#x}" for word in RESERVED[name])
    assert "not an instruction of this target" in str(fault_of(text))


def test_a_broadcast_that_older_targets_lack_faults() -> None:
    """The instruction uses row_newbcast:6, which gfx90a has and gfx908 lacks."""
    words = DPP, 0xFF000002 | 0x156 << 8
    batch = Batch("gfx908")
    batch.add("stop", ".long " + ", ".join(map(hex, words)))
    with pytest.raises(Fault, match="not an instruction of this target"):
        batch.load().run("stop", random_waves(random.Random(0), ["b32"], 1))


@pytest.mark.parametrize("text", CLAMPED)
def test_an_undocumented_clamp_faults(text: str) -> None:
    assert "instruction not implemented" in stopped_by("gfx90a", f"{text} clamp")


def test_an_overflow_mode_that_is_not_emulated_faults() -> None:
    mode = "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 23, 1), 1"
    fault = str(fault_of(f"{mode}\nv_add_f16 v4, v2, v3"))
    assert "MODE.FP16_OVFL is not emulated" in fault
    assert "v_add_f16" in fault


@pytest.mark.parametrize(
    ("target", "text"), [(target, text) for target, texts in STOPS.items() for text in texts]
)
def test_instructions_that_stop_a_wave_are_named(target: str, text: str) -> None:
    assert STOPS[target][text] in stopped_by(target, text)
