"""Tests barriers of a whole grid."""

from __future__ import annotations

import struct

import pytest

from .device import CodeObject, Memory, assemble, dispatch
from .test_faults import KERNEL

pytestmark = pytest.mark.check

GROUPS = 40

# In two rounds, every wave increments a counter, waits for all waves, and stores the counter.
TEXT = """
  s_mov_b32 m0, 0
  v_mov_b32 v1, 0
  v_mov_b32 v2, 1
  v_mov_b32 v6, {others}
  s_lshl_b32 s12, s2, 3
  v_mov_b32 v5, s12
  s_mov_b64 exec, 1
  {rounds}
"""
ROUND = """
  global_atomic_add v1, v2, s[8:9]
  s_waitcnt vmcnt(0)
  ds_gws_barrier v6 offset:{resource} gds
  s_waitcnt lgkmcnt(0)
  global_load_dword v4, v1, s[8:9]
  s_waitcnt vmcnt(0)
  ds_gws_barrier v6 offset:{resource} gds
  global_store_dword v5, v4, s[8:9] offset:{at}
  s_waitcnt vmcnt(0)
"""
SET_UP = "s_mov_b32 m0, 0\n  v_mov_b32 v6, {others}\n  ds_gws_init v6 offset:{resource} gds"


@pytest.mark.parametrize("resource", (0, 5))
def test_all_waves_of_a_grid_meet(resource: int) -> None:
    page = Memory(4096)
    rounds = "".join(ROUND.format(resource=resource, at=16 + 4 * n) for n in range(2))
    first = KERNEL.format(text=SET_UP.format(others=GROUPS - 1, resource=resource))
    body = TEXT.format(others=GROUPS - 1, rounds=rounds)
    for text, groups in ((first, 1), (KERNEL.format(text=body), GROUPS)):
        code = CodeObject(assemble("gfx90a", text))
        dispatch("gfx90a", code.kernel("kernel"), [64 * groups], [64], struct.pack("<Q", page.va))
    for group in range(GROUPS):
        seen = struct.unpack_from("<II", page.read(8, 16 + 8 * group))
        assert seen == (GROUPS, 2 * GROUPS), group
