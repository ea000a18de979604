"""Dispatch packets at the limits of grid size, group size, scratch size and registers."""

from __future__ import annotations

import ctypes
import os
import struct
import subprocess
import sys
from collections.abc import Sequence

import pytest

from .device import BEGIN, ROOT, CodeObject, Fault, Memory, assemble, dispatch, library

pytestmark = pytest.mark.check

#: A kernel in which each work-item adds 1 to a word; the kernel's argument is the word's address.
KERNEL = (
    BEGIN.format(name="kernel")
    + """\
  s_load_dwordx2 s[8:9], s[0:1], 0x0
  v_mov_b32 v2, 0
  v_mov_b32 v3, 1
  s_waitcnt lgkmcnt(0)
  global_atomic_add v2, v3, s[8:9]
  s_endpgm
.rodata
.p2align 6
.amdhsa_kernel kernel
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_next_free_vgpr {registers}
  .amdhsa_next_free_sgpr 32
  {extra}
.end_amdhsa_kernel
"""
)
#: Numbers from enum softgpu_fault_kind, which has no member for scratch.
ERRORS = {"scratch": 0, "dimensions": 5, "group size": 7, "registers": 9}


def ran(
    grid: Sequence[int],
    block: Sequence[int],
    target: str = "gfx90a",
    registers: int = 8,
    private: int = 0,
) -> int:
    """Returns how many work-items of the packet ran."""
    extra = ".amdhsa_accum_offset 8" if target in ("gfx90a", "gfx942") else ""
    text = KERNEL.format(registers=registers, extra=extra)
    code = CodeObject(assemble(target, text))
    page = Memory(4096)
    arguments = struct.pack("<Q", page.va)
    dispatch(target, code.kernel("kernel"), grid, block, arguments, private=private)
    return int.from_bytes(page.read(4), "little")


def refused(*arguments: object, **options: object) -> tuple[int, str]:
    """Returns the fault's text, and its kind, which decides the error that ROCr receives."""
    with pytest.raises(Fault) as caught:
        ran(*arguments, **options)  # type: ignore[arg-type]
    kind = library().isa_fault_kind
    kind.restype = ctypes.c_int
    return kind(), str(caught.value)


@pytest.mark.parametrize(
    ("grid", "block"),
    (
        ((1, 1, 1), (1, 1, 1)),
        ((1, 1, 1), (1024, 1, 1)),
        ((63, 1, 1), (64, 1, 1)),
        ((64, 1, 1), (64, 1, 1)),
        ((65, 1, 1), (64, 1, 1)),
        ((1023, 1, 1), (1024, 1, 1)),
        ((1025, 1, 1), (1024, 1, 1)),
        ((65537, 1, 1), (256, 1, 1)),
        ((5, 7, 3), (2, 3, 2)),
        ((33, 2, 1), (32, 32, 1)),
        ((1, 1, 65), (1, 1, 64)),
        ((1, 1, 2049), (1, 1, 1024)),
        ((0, 1, 1), (64, 1, 1)),
        ((64, 1, 0), (64, 1, 1)),
    ),
)
def test_each_work_item_runs_once(grid: tuple[int, ...], block: tuple[int, ...]) -> None:
    assert ran(grid, block) == grid[0] * grid[1] * grid[2]


@pytest.mark.parametrize("block", ((1025, 1, 1), (1024, 2, 1), (32, 32, 2), (65535, 65535, 65535)))
def test_a_group_has_1024_work_items_at_most(block: tuple[int, int, int]) -> None:
    kind, text = refused((64, 1, 1), block)
    assert kind == ERRORS["group size"]
    assert "larger than 1024 work-items" in text


@pytest.mark.parametrize("block", ((0, 1, 1), (64, 0, 1), (64, 1, 0)))
def test_a_group_without_work_items_is_refused(block: tuple[int, int, int]) -> None:
    kind, text = refused((64, 1, 1), block)
    assert kind == ERRORS["dimensions"]
    assert "no work-items" in text


def test_more_groups_than_64_bits_count_are_begun() -> None:
    """The device begins a dispatch of 2^31 * 2^31 * 4 groups. A 64-bit count of the groups would
    overflow to 0."""
    program = (
        "from softgpu.tests.isa.test_packets import refused\n"
        "print(refused((1 << 31, 1 << 31, 4), (1, 1, 1)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={**os.environ, "MGPU_RT_SOFTGPU": "budget=100000"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "more than budget=100000 instructions" in done.stdout


@pytest.mark.parametrize("size", (0xFFFFFFFD, 0xFFFFFFFF, 1 << 30))
def test_more_scratch_than_a_wave_can_have_is_refused(size: int) -> None:
    kind, text = refused((64, 1, 1), (64, 1, 1), private=size)
    assert kind == ERRORS["scratch"]
    assert "scratch memory" in text


@pytest.mark.parametrize(
    ("target", "registers", "most"),
    (
        ("gfx90a", 128, 1024),
        ("gfx90a", 136, 768),
        ("gfx90a", 512, 256),
        ("gfx942", 136, 768),
        pytest.param("gfx906", 64, 1024, marks=pytest.mark.check),
        pytest.param("gfx906", 68, 768, marks=pytest.mark.check),
        pytest.param("gfx908", 256, 256, marks=pytest.mark.check),
    ),
)
def test_a_group_has_to_fit_into_the_registers(target: str, registers: int, most: int) -> None:
    """A group's waves are spread over four SIMD units, and all waves of a unit share the unit's
    registers."""
    assert ran((most, 1, 1), (most, 1, 1), target, registers) == most
    if most < 1024:
        kind, text = refused((most + 1, 1, 1), (most + 1, 1, 1), target, registers)
        assert kind == ERRORS["registers"]
        assert f"{registers} vector registers" in text
