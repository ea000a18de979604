"""Generates a kernel for each memory instruction: every lane has its own 64 bytes in global,
workgroup or scratch memory. AMD's pseudocode gives the expected bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .cases import register
from .encodings import Row, rows
from .pseudocode import Memory, evaluate, texts
from .single import LANES, Wave
from .values import Value

CELL = 64  # bytes for each lane
REGION = LANES * CELL
FAMILIES = ("global", "flat", "mubuf", "ds", "scratch", "smem")
IGNORED = (  # not implemented, or without an effect that a single instruction shows
    *("MV_FORMAT", "MV_CACHE", "DS_NONE", "DS_NO_ADDRESS", "DS_NOP", "DS_SWIZZLE", "DS_PERMUTE"),
    *("DS_BPERMUTE", "DS_GWS_INIT", "DS_GWS_BARRIER", "SM_CACHE", "SM_MEMTIME", "SM_MEMREALTIME"),
    *("SM_PROBE", "SM_DISCARD", "SM_ATOMIC", "SM_BUFFER_ATOMIC", "SM_SCRATCH_LOAD"),
    *("SM_SCRATCH_STORE", "MV_LDS_U8", "MV_LDS_I8", "MV_LDS_U16", "MV_LDS_I16", "MV_LDS_32"),
)
OFFSET = 8
DWORDS = {"NONE": 0, "B32": 1, "B64": 2, "B96": 3, "B128": 4, "B256": 8, "B512": 16}

# s[30:31]: the wave's region. v[10:11]: address of the lane's 64 bytes. v1: the instruction's
# offset. v12: the index of the lane's first element, in an array of dwords or of dword pairs.
ADDRESSES = """
  s_load_dwordx2 s[30:31], s[0:1], 0x10
  s_waitcnt lgkmcnt(0)
  s_lshl_b32 s34, s2, 12
  s_add_u32 s30, s30, s34
  s_addc_u32 s31, s31, 0
  v_mov_b32 v10, s30
  v_mov_b32 v11, s31
  v_add_co_u32 v10, vcc, v1, v10
  v_addc_co_u32 v11, vcc, 0, v11, vcc
  v_lshrrev_b32 v12, {shift}, v1
  s_mov_b32 s36, s30
  s_mov_b32 s37, s31
  s_mov_b32 s38, 4096
  s_mov_b32 s39, 0x27000
  s_mov_b32 m0, -1
  s_mov_b64 vcc, s[18:19]
"""
LDS_IN = "".join(
    f"""
  global_load_dwordx4 v[18:21], v[10:11], off offset:{n}
  s_waitcnt vmcnt(0)
  ds_write_b128 v1, v[18:21] offset:{n}"""
    for n in range(0, CELL, 16)
)
LDS_OUT = "".join(
    f"""
  ds_read_b128 v[18:21], v1 offset:{n}
  s_waitcnt lgkmcnt(0)
  global_store_dwordx4 v[10:11], v[18:21], off offset:{n}"""
    for n in range(0, CELL, 16)
)
SCRATCH_IN = "".join(
    f"""
  global_load_dword v18, v[10:11], off offset:{n}
  s_waitcnt vmcnt(0)
  v_mov_b32 v19, {n}
  scratch_store_dword v19, v18, off"""
    for n in range(0, CELL, 4)
)
# The address of scratch memory in the interpreter. A real kernel receives its scratch address in
# its first registers.
FLAT_SCRATCH = "\n  s_mov_b32 flat_scratch_lo, 0\n  s_mov_b32 flat_scratch_hi, 0x1000"
SCRATCH_OUT = "".join(
    f"""
  v_mov_b32 v19, {n}
  scratch_load_dword v18, v19, off
  s_waitcnt vmcnt(0)
  global_store_dword v[10:11], v18, off offset:{n}"""
    for n in range(0, CELL, 4)
)
ZERO_OFFSET = "\n  v_mov_b32 v12, 0"  # scratch addresses are relative to the lane's scratch


def scratch_in(target: str) -> str:
    """Copies the lanes' bytes to scratch; on gfx942 the hardware supplies the scratch address."""
    return SCRATCH_IN if target == "gfx942" else FLAT_SCRATCH + SCRATCH_IN


@dataclass(frozen=True)
class MemoryCase:
    """A memory instruction. The kernel stores only one quarter of a wide scalar load's result, and
    `part` selects the quarter."""

    name: str
    row: Row
    text: str
    setup: str
    after: str = ""
    returns: bool = False
    part: int = 0

    @property
    def stride(self) -> int:
        """Returns the distance in bytes between the locations of neighbouring lanes."""
        if "st64" not in self.row.name:
            return CELL
        return 8 if "b64" in self.row.name else 4


def operands(row: Row) -> tuple[str, str]:
    """Returns the registers that receive the loaded values, and the registers that contain the
    values to store."""
    loaded = register_of("v", 14, row.rest[0])
    return loaded, register_of("v", 2, row.rest[1])


def register_of(file: str, number: int, kind: str) -> str:
    count = DWORDS[kind]
    if not count:
        return ""
    return register(file, number, "B32") if count == 1 else f"{file}[{number}:{number + count - 1}]"


def join(*words: str) -> str:
    return ", ".join(word for word in words if word)


def vector_cases(row: Row, target: str) -> Iterator[MemoryCase]:
    """Generates cases of global, flat, mubuf and scratch instructions for every address form.
    Atomics occur both with and without the returned old value."""
    loaded, stored = operands(row)
    atomic = "ATOMIC" in row.meaning
    setup = ADDRESSES.format(shift=4)
    addresses = {
        "global": (("v[10:11]", "off"), ("v1", "s[30:31]")),
        "flat": (("v[10:11]", ""),),
        "scratch": (("v12", "off"),),
        "mubuf": (("v1", "s[36:39], 0 offen"),),
    }[row.family]
    after = SCRATCH_OUT if row.family == "scratch" else ""
    if row.family == "scratch":
        setup += scratch_in(target) + ZERO_OFFSET
    for number, (address, base) in enumerate(addresses):
        for returns in (False, True) if atomic else (not stored,):
            first = loaded if returns else ""
            if row.family == "mubuf":
                words = join(stored or first, address, base)
            else:
                words = join(first, address, stored, base)
            bit = "sc0" if target == "gfx942" else "glc"
            glc = f" {bit}" if atomic and returns else ""
            result = row.rest[0] != "NONE" and (returns or not atomic)
            text = f"{row.name} {words} offset:{OFFSET}{glc}"
            if row.family == "mubuf" and atomic and returns:  # the old value replaces the data
                text += "\n  v_mov_b32 v14, v2"
                text += "\n  v_mov_b32 v15, v3" * (row.rest[0] == "B64")
            name = f"{row.name}_{number}{int(returns)}"
            yield MemoryCase(name, row, text, setup, after, result)


def ds_case(row: Row) -> MemoryCase:
    loaded = "" if row.rest[0] == "NONE" else register_of("v", 14, row.rest[0])
    data = [
        "" if k == "NONE" else register_of("v", n, k)
        for n, k in zip((2, 6), row.rest[1:3], strict=True)
    ]
    address, offsets, shift = "v1", f"offset:{OFFSET}", 4
    if "st64" in row.name:
        address, offsets, shift = "v12", "offset1:1", 3 if "b64" in row.name else 4
    elif "2_" in row.meaning and "DS_" in row.meaning:
        offsets = "offset0:1 offset1:3"
    text = f"{row.name} {join(loaded, address, *data)} {offsets}"
    setup = ADDRESSES.format(shift=shift) + LDS_IN
    return MemoryCase(row.name, row, text, setup, LDS_OUT, row.rest[0] != "NONE")


def smem_cases(row: Row) -> Iterator[MemoryCase]:
    count = DWORDS[row.rest[0]]
    base = "s[36:39]" if "BUFFER" in row.meaning else "s[30:31]"
    store = "STORE" in row.meaning
    file = register_of("s", 20 if store else 40, row.rest[0])
    text = f"{row.name} {file}, {base}, {OFFSET:#x}"
    for part in range(0, max(count, 1), 4):
        moves = [f"\n  v_mov_b32 v{14 + n}, s{40 + part + n}" for n in range(min(4, count))]
        shown = "" if store else "\n  s_waitcnt lgkmcnt(0)" + "".join(moves)
        yield MemoryCase(
            f"{row.name}_{part}", row, text + shown, ADDRESSES.format(shift=4), "", not store, part
        )


def all_memory_cases(target: str) -> Iterator[MemoryCase]:
    for row in rows():
        if row.family not in FAMILIES or target not in row.targets:
            continue
        if row.meaning in IGNORED or row.name not in texts() or "bf16" in row.name:
            continue
        if row.family == "ds":
            yield ds_case(row)
        elif row.family == "smem":
            yield from smem_cases(row)
        else:
            yield from (case for case in vector_cases(row, target) if exists(case, target))


def exists(case: MemoryCase, target: str) -> bool:
    """Returns whether the target has the instruction. On the chip gfx908, float atomics on global
    memory do not return the old value."""
    floats = case.row.name.endswith(("_add_f32", "_pk_add_f16"))
    return not (target == "gfx908" and case.returns and floats)


def names_of(case: MemoryCase, wave: Wave, lane: int, memory: Memory) -> dict[str, object]:
    """Maps the pseudocode's operand names to their values. Addresses are relative to the start of
    the region."""
    row, (data, data2, _, old) = case.row, wave.lanes[lane]
    two = row.family == "ds" and "2_" in row.meaning and "DS_" in row.meaning
    offsets = (1, 3) if two else (OFFSET, 0)
    if "st64" in row.name:
        offsets = (0, 1)
    address = case.stride * lane
    if "[ADDR]" in texts()[row.name]:  # this text omits the offset
        address += OFFSET
    loads = case.returns and "STORE" not in row.meaning
    return {
        "MEM": memory,
        "ADDR": Value("u", 64, address),
        "VADDR": Value("u", 64, address),
        "ADDR_BASE": Value("u", 64, address),
        **dict.fromkeys(("SADDR", "SRSRC", "SOFFSET", "SBASE"), Value("u", 32, 0)),
        "OFFSET": Value("u", 32, OFFSET),
        "OFFSET0": Value("u", 8, offsets[0]),
        "OFFSET1": Value("u", 8, offsets[1]),
        "DATA": Value("b", 128, data),
        "DATA2": Value("b", 128, data2),
        "VDATA": Value("b", 128, old if loads else data),
        "RETURN_DATA": Value("b", 128, old),
    }


def expected(case: MemoryCase, wave: Wave, region: bytes) -> tuple[list[int], bytes]:
    """Returns the state after the instruction: each lane's destination, and the memory region."""
    memory = Memory(region)
    if case.row.family == "smem":
        return expected_scalar(case, wave, memory)
    lanes = [lane[3] for lane in wave.lanes]
    width = 32 * DWORDS[case.row.rest[0]]
    mask = (1 << width) - 1
    for n in range(LANES):
        if not wave.exec >> n & 1:
            continue
        after = evaluate(case.row.name, names_of(case, wave, n, memory))
        loaded = after["VDATA"] if "VDATA" in texts()[case.row.name] else after["RETURN_DATA"]
        if case.returns:
            lanes[n] = lanes[n] & ~mask | loaded.bits & mask
    return lanes, bytes(memory.data)


def expected_scalar(case: MemoryCase, wave: Wave, memory: Memory) -> tuple[list[int], bytes]:
    names = names_of(case, wave, 0, memory)
    scalars = wave.scalars[0] | wave.scalars[1] << 64
    names["SDATA"] = Value("b", 512, 0 if case.returns else scalars)
    after = evaluate(case.row.name, names)
    lanes = [lane[3] for lane in wave.lanes]
    if case.returns:
        count = min(DWORDS[case.row.rest[0]], 4)
        mask = (1 << 32 * count) - 1
        shown = after["SDATA"].bits >> 32 * case.part & mask
        lanes = [old & ~mask | shown if wave.exec >> n & 1 else old for n, old in enumerate(lanes)]
    return lanes, bytes(memory.data)
