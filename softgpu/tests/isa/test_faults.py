"""Tests that a fault's message names the fault, its location, and the instruction."""

from __future__ import annotations

import contextlib
import os
import re
import struct
import sys

import pytest

from tests.support.patience import run_process

from .device import BEGIN, ROOT, CodeObject, Fault, Memory, assemble, dispatch, library

pytestmark = pytest.mark.check

KERNEL = (
    BEGIN.format(name="kernel")
    + """\
  s_load_dwordx2 s[8:9], s[0:1], 0x0
  s_waitcnt lgkmcnt(0)
  {text}
  s_endpgm
.rodata
.p2align 6
.amdhsa_kernel kernel
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_system_sgpr_workgroup_id_x 1
  .amdhsa_system_sgpr_workgroup_id_y 1
  .amdhsa_next_free_vgpr 16
  .amdhsa_next_free_sgpr 32
  .amdhsa_accum_offset 16
  .amdhsa_group_segment_fixed_size 256
.end_amdhsa_kernel
"""
)


def run(text: str, groups: tuple[int, int] = (1, 1), size: int = 64) -> None:
    """Runs a grid of workgroups with `size` work-items each. The kernel's argument is the address
    of one page of memory."""
    code = CodeObject(assemble("gfx90a", KERNEL.format(text=text)))
    page = Memory(4096)
    grid = [groups[0] * size, groups[1]]
    dispatch("gfx90a", code.kernel("kernel"), grid, [size, 1], struct.pack("<Q", page.va))


def fault_of(text: str, **options: object) -> Fault:
    with pytest.raises(Fault) as caught:
        run(text, **options)  # type: ignore[arg-type]
    return caught.value


@pytest.mark.parametrize(
    ("access", "size"),
    (("global_load_dword v4, v2, s[8:9]", 4), ("global_store_dwordx4 v2, v[4:7], s[8:9]", 16)),
)
def test_an_access_outside_mapped_memory_faults(access: str, size: int) -> None:
    """Makes lane 37 of the third workgroup access an address that lies a gigabyte beyond the
    page."""
    text = f"""
    v_and_b32 v0, 0x3ff, v0
    v_lshlrev_b32 v2, 4, v0
    s_cmp_eq_u32 s2, 2
    s_cselect_b32 s10, 0x40000000, 0
    v_mov_b32 v3, s10
    v_cmp_eq_u32 vcc, 37, v0
    v_cndmask_b32 v3, 0, v3, vcc
    v_add_u32 v2, v2, v3
    {access}"""
    fault = fault_of(text, groups=(4, 1))
    assert "workgroup (2,0,0), wave 0, lane 37: access outside mapped memory" in str(fault)
    assert f"at {fault.address:#x}, {size} bytes" in str(fault)
    assert re.search(r"kernel at 0x[0-9a-f]+ \(gfx90a\)", str(fault))
    assert access in str(fault)
    assert re.search(r"at offset 0x[0-9a-f]+ of the kernel: [0-9a-f]{8} [0-9a-f]{8}  ", str(fault))


def test_an_instruction_that_replaces_an_unknown_one_runs() -> None:
    """Changes the second word of an instruction, as a program does that loads another module at the
    address of one that faulted."""
    known = "v_add_u32_dpp v2, v3, v4 row_shl:1 row_mask:0xf bank_mask:0xf"
    image = assemble("gfx90a", KERNEL.format(text=known))
    code, page = CodeObject(image), Memory(4096)
    kernel, arguments = code.kernel("kernel"), struct.pack("<Q", page.va)
    good = struct.pack("<I", 0xFF010103)
    reserved = struct.pack("<I", 0xFF010003)  # row_shl:0
    offset = code.memory.read().index(good)
    code.memory.write(reserved, offset)
    with pytest.raises(Fault, match=NO_INSTRUCTION):
        dispatch("gfx90a", kernel, [64], [64], arguments)
    code.memory.write(good, offset)
    dispatch("gfx90a", kernel, [64], [64], arguments)


@pytest.mark.parametrize("words", [0, 1])
def test_a_kernel_that_its_mapping_cuts_off_faults_and_runs_when_it_is_whole(words: int) -> None:
    """Cuts the kernel off before or within its last but one instruction, which has two words."""
    image = assemble("gfx90a", KERNEL.format(text="v_add3_u32 v2, v3, v4, v5"))
    code, page = CodeObject(image), Memory(4096)
    kernel, arguments = code.kernel("kernel"), struct.pack("<Q", page.va)
    memory = code.memory
    cut = memory.read().index(struct.pack("<I", 0xD1FF0002)) + 4 * words
    for size, runs in ((cut, False), (memory.size, True)):
        memory.unmap()
        assert library().isa_map(memory.va, size, memory.host)
        with contextlib.nullcontext() if runs else pytest.raises(Fault, match=NO_INSTRUCTION):
            dispatch("gfx90a", kernel, [64], [64], arguments)


NO_INSTRUCTION, NOT_IMPLEMENTED = "not an instruction of this target", "instruction not implemented"
#: An instruction that only LLVM knows, and one that no device executes.
ONLY_LLVMS = "image_get_resinfo v[0:3], v4, s[8:15] dmask:0xf unorm"
NOBODYS = "image_load v[0:3], v4, s[8:15] dmask:0xf unorm"


@pytest.mark.parametrize(
    ("text", "messages"),
    (
        ("v_mov_b32 v2, 0x100\nds_read_b32 v3, v2", ("access outside workgroup memory at 0x100",)),
        ("v_mov_b32 v2, 0xfe\nds_read_b32 v3, v2", ("access outside workgroup memory at 0xfe",)),
        (
            "s_mov_b64 s[10:11], 0\ns_load_dword s12, s[10:11], 0x40",
            ("scalar access outside mapped",),
        ),
        ("v_mov_b32 v2, 2\nglobal_atomic_add v2, v2, s[8:9]", ("misaligned atomic access",)),
        (
            "s_mov_b32 flat_scratch_lo, 0\ns_mov_b32 flat_scratch_hi, 0x1000\n"
            "v_mov_b32 v2, 0\nscratch_load_dword v3, v2, off",
            ("access outside scratch memory",),
        ),
        ("scratch_load_dword v3, v2, off", ("FLAT_SCRATCH",)),
        (
            "v_mov_b32 v2, 1\n.long 0xd3ff0000, 0x12345678",
            (NO_INSTRUCTION, "d3ff0000 12345678", "kernel at 0x"),
        ),
        (ONLY_LLVMS, (NO_INSTRUCTION, ONLY_LLVMS)),
        (NOBODYS, (NOT_IMPLEMENTED, NOBODYS)),
        (
            "s_mov_b32 s10, 0\ns_mov_b32 s11, 0\ns_setpc_b64 s[10:11]",
            ("jump to 0x0, where no code is",),
        ),
    ),
)
def test_other_faults_are_named(text: str, messages: tuple[str, ...]) -> None:
    said = str(fault_of(text))
    assert all(message in said for message in messages), said


def test_an_unknown_instruction_that_is_not_reached_does_no_harm() -> None:
    run("s_branch over\n.long 0xd3ff0000, 0x12345678\nover: s_nop 0")


def say(text: str) -> None:
    try:
        run(text, size=128)
    except Fault as fault:
        print(fault)
    else:
        print("no fault")


def in_a_process(text: str, settings: str) -> str:
    """Returns the fault message with the given settings. Starts a new process, because a process
    reads the settings only once."""
    program = "import sys\nfrom softgpu.tests.isa.test_faults import say\nsay(sys.argv[1])"
    done = run_process(
        [sys.executable, "-c", program, text], {**os.environ, "MGPU_RT_SOFTGPU": settings}, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_a_wave_beyond_the_budget_faults() -> None:
    text = in_a_process("again: s_branch again", "gfx90a,budget=100000")
    assert "more than budget=100000 instructions (MGPU_RT_SOFTGPU)" in text
    assert "0 of the group's 2 waves wait at a barrier" in text
    assert "s_branch" in text


FIRST_WAVE_WAITS = """
    v_readfirstlane_b32 s10, v0
    s_cmp_lt_u32 s10, 64
    s_cbranch_scc1 meet
    {}
    meet: s_barrier"""


@pytest.mark.parametrize("budget", ("", "budget=0,"))
def test_a_barrier_that_cannot_complete_faults(budget: str) -> None:
    """The first wave waits at a barrier that the group's second wave never reaches."""
    text = in_a_process(
        FIRST_WAVE_WAITS.format("again: s_branch again"),
        f"{budget}barrier_budget=100000",
    )
    assert "1 of the group's 2 waves wait at a barrier that this one has not come to" in text
    assert "in barrier_budget=100000 instructions (MGPU_RT_SOFTGPU)" in text
    assert "wave 1" in text
    assert "s_branch" in text


LONG_WORK = """
    s_movk_i32 s11, 0x{:x}
    again: s_sub_u32 s11, s11, 1
    s_cmp_lg_u32 s11, 0
    s_cbranch_scc1 again"""


def test_a_barrier_may_be_waited_for_long() -> None:
    """A barrier may take as many instructions as barrier_budget allows, and each barrier has its
    own limit."""
    text = FIRST_WAVE_WAITS.format(LONG_WORK.format(0x7000))  # 86,016 instructions
    for budget in ("0", "200000"):
        assert in_a_process(text, f"barrier_budget={budget}") == "no fault\n"
    again = text.replace("meet", "other").replace("again", "more")
    assert in_a_process(text + again, "barrier_budget=150000") == "no fault\n"
    assert "has not come to" in in_a_process(text, "barrier_budget=50000")


@pytest.mark.parametrize(
    ("name", "default", "value"),
    (
        ("budget", 0, "many"),
        ("budget", 0, "99999999999999999999"),
        ("barrier_budget", 10**10, "-1"),
        ("barrier_budget", 10**10, "1e9"),
    ),
)
def test_an_invalid_budget_leaves_the_default(name: str, default: int, value: str) -> None:
    text = in_a_process("s_nop 0", f"{name}={value}")
    said = f"{name}={value} is not a number of instructions; going on with {default}\n"
    assert said in text


def test_a_barrier_does_not_wait_for_waves_that_ended() -> None:
    run(
        """
        v_readfirstlane_b32 s10, v0
        s_cmp_lt_u32 s10, 64
        s_cbranch_scc1 meet
        s_endpgm
        meet: s_barrier""",
        size=128,
    )
