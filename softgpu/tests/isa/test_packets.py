"""Dispatch packets at the limits of grid size, group size, scratch size and registers."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace

import pytest

from .device import BEGIN, ROOT, CodeObject, Fault, Memory, assemble, dispatch

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
#: Members of enum softgpu_fault_kind, which has none for scratch. ROCr converts each kind to an
#: error of its own.
SCRATCH, DIMENSIONS, GROUP_MEMORY, GROUP_SIZE, CODE, REGISTERS = 0, 5, 6, 7, 8, 9


def ran(
    grid: Sequence[int],
    block: Sequence[int],
    target: str = "gfx90a",
    registers: int = 8,
    dimensions: int = 3,
    **fields: int,
) -> int:
    """Returns how many work-items of the packet ran; `fields` are fields of the kernel in the
    packet."""
    extra = ".amdhsa_accum_offset 8" if target in ("gfx90a", "gfx942") else ""
    text = KERNEL.format(registers=registers, extra=extra)
    code = CodeObject(assemble(target, text))
    page = Memory(4096)
    kernel = replace(code.kernel("kernel"), **fields)
    dispatch(target, kernel, grid, block, struct.pack("<Q", page.va), dimensions)
    return int.from_bytes(page.read(4), "little")


def refused(*arguments: object, **options: object) -> tuple[int, str]:
    """Returns the fault's kind and the fault's text."""
    with pytest.raises(Fault) as caught:
        ran(*arguments, **options)  # type: ignore[arg-type]
    return caught.value.kind, str(caught.value)


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


BLOCK = (64, 1, 1)


@pytest.mark.parametrize(
    ("kind", "text", "block", "fields"),
    (
        *((GROUP_SIZE, "larger than 1024 work-items", block, {})
          for block in ((1025, 1, 1), (1024, 2, 1), (32, 32, 2), (65535, 65535, 65535))),
        *((DIMENSIONS, "no work-items", block, {})
          for block in ((0, 1, 1), (64, 0, 1), (64, 1, 0))),
        (DIMENSIONS, "the packet has no dimensions", BLOCK, {"dimensions": 0}),
        *((SCRATCH, "more scratch memory", BLOCK, {"private_size": size})
          for size in (0xFFFFFFFD, 0xFFFFFFFF, 1 << 30)),
        (GROUP_MEMORY, "more than 64 KiB", BLOCK, {"group_size": (64 << 10) + 1}),
        (CODE, "there is no kernel", BLOCK, {"object": 0}),
    ),
)  # fmt: skip
def test_a_packet_beyond_a_limit_is_refused(
    kind: int, text: str, block: tuple[int, int, int], fields: dict[str, int]
) -> None:
    found, said = refused((64, 1, 1), block, **fields)
    assert found == kind
    assert text in said


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
        assert kind == REGISTERS
        assert f"{registers} vector registers" in text
