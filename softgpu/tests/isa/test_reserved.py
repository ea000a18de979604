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
