"""Patterns by which matrix instructions read elements of A and B from other lanes."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from .device import BEGIN, CodeObject, Kernel, Memory, assemble, dispatch, on_targets
from .matrix import (
    LANES,
    OF_GFX942,
    PATTERNS,
    SINCE_GFX90A,
    SINCE_GFX908,
    TYPES,
    Pattern,
    Shape,
    numbers,
    product,
)

pytestmark = pytest.mark.check

SHAPES = {
    "gfx908": SINCE_GFX908,
    "gfx90a": SINCE_GFX908 + SINCE_GFX90A,
    "gfx942": OF_GFX942,
}
# A and B are in v[2:5]. C starts at v32, or at a0 on gfx908, which requires accumulation registers
# for C. The result starts at v64, or at a32 on gfx908.
KERNEL = (
    BEGIN
    + """\
  s_load_dwordx4 s[8:11], s[0:1], 0x0
  s_waitcnt lgkmcnt(0)
  v_lshlrev_b32 v1, 4, v0
  global_load_dwordx4 v[2:5], v1, s[8:9]
  s_add_u32 s8, s8, {operands}
  s_addc_u32 s9, s9, 0
  v_mul_u32_u24 v1, {lane}, v0
  {loads}
  s_waitcnt vmcnt(0)
  {text}
  s_endpgm
.rodata
.p2align 6
.amdhsa_kernel {name}
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_next_free_vgpr 96
  .amdhsa_next_free_sgpr 16
  {extra}
.end_amdhsa_kernel
"""
)
OPERANDS = 16 * LANES


def patterns(shape: Shape) -> list[Pattern]:
    """Returns each pattern of B, combined with some patterns of A. One pattern of A has no
    broadcast. For each group size, other patterns broadcast block 1 and the last block. The
    instructions for f64 have no patterns."""
    if shape.kind == "f64":
        return [Pattern()]
    some = [(0, 0)]
    for cbsz in range(1, shape.blocks.bit_length()):
        some += [(cbsz, abid) for abid in sorted({1, 2**cbsz - 1})]
    return [Pattern(cbsz, abid, blgp) for blgp in PATTERNS for cbsz, abid in some]


def bytes_of(shape: Shape) -> int:
    """Returns how many bytes of A one lane holds; the lane holds equally many bytes of B."""
    return shape.each * np.dtype(TYPES[shape.kind]).itemsize


def kernel(target: str, shape: Shape) -> str:
    count = shape.results * np.dtype(TYPES[shape.result]).itemsize // 4
    words = ("v[2:3]", "v[4:5]") if bytes_of(shape) == 8 else ("v2", "v4")
    loads = [f"global_load_dword v{32 + n}, v1, s[8:9] offset:{4 * n}" for n in range(count)]
    text = []
    if target == "gfx908":
        text += [f"v_accvgpr_write_b32 a{n}, v{32 + n}" for n in range(count)]
        registers = f"a[32:{31 + count}]", *words, f"a[0:{count - 1}]"
    else:
        registers = f"v[64:{63 + count}]", *words, f"v[32:{31 + count}]"
    for pattern in patterns(shape):
        newer = target == "gfx942"
        instruction = shape.instruction_of_gfx942 if newer else shape.instruction
        text.append(f"{instruction} {', '.join(registers)} {pattern}")
        if target == "gfx908":
            text += [f"v_accvgpr_read_b32 v{64 + n}, a{32 + n}" for n in range(count)]
        text += [f"global_store_dword v1, v{64 + n}, s[10:11] offset:{4 * n}" for n in range(count)]
        text += [f"s_add_u32 s10, s10, {4 * LANES * count}", "s_addc_u32 s11, s11, 0"]
    return KERNEL.format(
        name=shape.name,
        operands=OPERANDS,
        lane=4 * count,
        loads="\n".join(loads),
        text="\n".join(text),
        extra=".amdhsa_accum_offset 96" if target in ("gfx90a", "gfx942") else "",
    )


def in_registers(values: np.ndarray) -> np.ndarray:
    """the elements of each lane, padded to two registers"""
    words = np.ascontiguousarray(values).view(np.uint32)
    return np.pad(words, ((0, 0), (0, 2 - words.shape[1])))


def through_memory(target: str, kernel: Kernel, operands: bytes, size: int) -> bytes:
    """Runs a kernel of one wave, whose arguments are the addresses of its operands and results."""
    given, taken = Memory(len(operands)), Memory(size)
    given.write(operands)
    arguments = struct.pack("<QQ", given.va, taken.va)
    dispatch(target, kernel, [LANES], [LANES], arguments)
    for memory in (given, taken):
        memory.unmap()
    return taken.read()


@on_targets(*SHAPES)
def test_matrix_instructions_multiply_in_all_patterns(target: str) -> None:
    text = "".join(kernel(target, shape) for shape in SHAPES[target])
    code = CodeObject(assemble(target, text))
    wrong = []
    for seed, shape in enumerate(SHAPES[target]):
        rng = np.random.default_rng(seed)
        a, b = (numbers(rng, shape.kind, (LANES, shape.each)) for _ in range(2))
        c = numbers(rng, shape.result, (LANES, shape.results))
        some = patterns(shape)
        operands = np.hstack([in_registers(a), in_registers(b)]).tobytes() + c.tobytes()
        size = len(some) * c.nbytes
        taken = through_memory(target, code.kernel(shape.name), operands, size)
        results = np.frombuffer(taken, c.dtype)
        for pattern, got in zip(some, results.reshape(len(some), *c.shape), strict=True):
            if not np.array_equal(got, product(shape, a, b, c, pattern)):
                wrong.append(f"{shape.instruction} {pattern}")
    code.memory.unmap()
    assert not wrong, "\n".join([f"{len(wrong)} wrong", *wrong[:12]])
