"""Lists the executed opcodes, and the oracles that check each opcode. The generated table contains
this list, and a test requires an oracle for every executed opcode."""

from __future__ import annotations

from functools import cache

from . import cases, memory_cases
from .device import TARGETS
from .encodings import Row, rows
from .instructions import VECTOR

FAULTING_MEANINGS = (
    *("softgpu_run_unknown", "DS_NONE", "DS_NO_ADDRESS", "MV_FORMAT", "SM_ATOMIC"),
    *("SM_BUFFER_ATOMIC", "SM_SCRATCH_LOAD", "SM_SCRATCH_STORE"),
    *("MV_IMAGE_LOAD", "MV_IMAGE_STORE", "MV_IMAGE_SAMPLE", "MV_IMAGE_GATHER"),
)
# Instructions whose table rows name no function, because the decoder selects the handler.
SPECIAL = (
    *("v_nop", "v_clrexcp", "v_readfirstlane_b32", "v_swap_b32", "v_readlane_b32"),
    *("v_writelane_b32", "v_accvgpr_read_b32", "v_accvgpr_write_b32"),
)
# Opcodes that a test file checks by name.
BY_TEST = {
    "test_lanes": (
        *("ds_swizzle_b32", "ds_permute_b32", "ds_bpermute_b32", "v_readfirstlane_b32"),
        *("v_swap_b32", "v_readlane_b32", "v_writelane_b32", "v_fma_mix_f32", "v_fma_mixlo_f16"),
        *("v_fma_mixhi_f16", "s_movrels_b32", "s_movreld_b32", "s_movrels_b64", "s_movreld_b64"),
        *("s_set_gpr_idx_on", "s_set_gpr_idx_off", "s_set_gpr_idx_idx", "s_set_gpr_idx_mode"),
        *("s_getreg_b32", "s_setreg_b32", "s_setreg_imm32_b32", "v_accvgpr_read_b32"),
        *("v_accvgpr_write_b32", "v_accvgpr_mov_b32"),
    ),
    "test_gfx942": (
        *("v_cvt_f32_fp8", "v_cvt_f32_bf8", "v_cvt_pk_f32_fp8", "v_cvt_pk_f32_bf8"),
        *("v_cvt_pk_fp8_f32", "v_cvt_pk_bf8_f32", "v_cvt_sr_fp8_f32", "v_cvt_sr_bf8_f32"),
        *("global_load_lds_ubyte", "global_load_lds_sbyte", "global_load_lds_ushort"),
        *("global_load_lds_sshort", "global_load_lds_dword", "global_atomic_pk_add_bf16"),
        *("flat_atomic_pk_add_bf16", "ds_pk_add_bf16", "ds_pk_add_rtn_bf16"),
    ),
    "kernels/mathematics": ("v_trig_preop_f64",),
    "test_gws": ("ds_gws_init", "ds_gws_barrier"),
    "test_control": (
        *("s_branch", "s_cbranch_scc0", "s_cbranch_scc1", "s_cbranch_vccz", "s_cbranch_vccnz"),
        *("s_cbranch_execz", "s_cbranch_execnz", "s_cbranch_cdbgsys", "s_cbranch_cdbguser"),
        *("s_cbranch_cdbgsys_or_user", "s_cbranch_cdbgsys_and_user", "s_call_b64", "s_getpc_b64"),
        *("s_setpc_b64", "s_swappc_b64", "s_nop", "s_wakeup", "s_waitcnt", "s_sleep", "s_setprio"),
        *("s_icache_inv", "s_incperflevel", "s_decperflevel", "s_ttracedata", "s_sethalt"),
        *("s_sendmsg", "s_trap", "v_nop", "v_clrexcp", "ds_nop", "buffer_wbinvl1", "s_barrier"),
        *(
            "buffer_wbinvl1_vol",
            "buffer_wbl2",
            "buffer_invl2",
            "buffer_inv",
            "s_dcache_inv",
            "s_dcache_wb",
        ),
        *("s_dcache_inv_vol", "s_dcache_wb_vol", "s_dcache_discard", "s_dcache_discard_x2"),
        *("v_madmk_f32", "v_madak_f32", "s_memtime", "s_memrealtime", "s_endpgm"),
        *("s_endpgm_saved", "s_atc_probe", "s_atc_probe_buffer"),
    ),
}


def executed(row: Row) -> bool:
    """Returns whether the interpreter executes the opcode. An opcode that is not executed causes a
    fault that names the instruction."""
    if row.meaning == "NULL":
        return row.name in SPECIAL
    return row.meaning not in FAULTING_MEANINGS


@cache
def by_pseudocode() -> frozenset[str]:
    arithmetic = {row.name for row in rows() if cases.checkable(row)}
    memory = {case.row.name for t in TARGETS for case in memory_cases.all_memory_cases(t)}
    return frozenset(arithmetic | memory)


def oracles(row: Row) -> list[str]:
    """Returns the oracles that check an executed opcode."""
    found = []
    if row.name in by_pseudocode():
        found.append("pseudocode")
    if row.name in VECTOR:
        found.append("exact")
    if row.name.startswith("v_smfmac_"):
        found.append("`test_sparse`")
    if row.name.startswith("v_mfma_"):
        narrow = any(kind in row.name for kind in ("_fp8", "_bf8", "_xf32"))
        found.append("`test_gfx942`" if narrow else "`test_matrix`")
    found += [f"`{test}`" for test, names in BY_TEST.items() if row.name in names]
    return found
