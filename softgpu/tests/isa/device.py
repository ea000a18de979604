"""Runs the interpreter through ctypes, without HIP: provides memory, code objects and dispatches
for a test."""

from __future__ import annotations

import ctypes
import mmap
import struct
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pytest

from tests.support.suites import in_check

ROOT = Path(__file__).resolve().parents[3]
LIBRARY = ROOT / "build/softgpu/libisa.so"
TARGETS = ("gfx906", "gfx908", "gfx90a", "gfx942")
OLDER = ("gfx906", "gfx908")  # most of the older chips' tests are for `make check`
PAGE = mmap.PAGESIZE

#: The lines of a kernel's assembly text that precede the kernel's instructions.
BEGIN = """
.text
.globl {name}
.p2align 8
.type {name},@function
{name}:
"""


def on_targets(*targets: str, seldom: Sequence[str] = OLDER) -> pytest.MarkDecorator:
    """Runs a test for each target; only `make check` runs the test for the targets in `seldom`."""
    return pytest.mark.parametrize("target", in_check(targets, lambda target: target in seldom))


class Fault(Exception):
    """Raised if a kernel stopped with a fault; the text contains the location and the reason. The
    kind is a member of enum softgpu_fault_kind."""

    def __init__(self, text: str, address: int, kind: int) -> None:
        super().__init__(text)
        self.address = address
        self.kind = kind


@lru_cache
def library() -> ctypes.CDLL:
    lib = ctypes.CDLL(str(LIBRARY))
    u64, pointer, text = ctypes.c_uint64, ctypes.c_void_p, ctypes.c_char_p
    lib.isa_map.argtypes = [u64, u64, pointer]
    lib.isa_map.restype = ctypes.c_bool
    lib.isa_unmap.argtypes = [u64]
    lib.isa_dispatch.argtypes = [text, pointer, text, ctypes.c_size_t, ctypes.POINTER(u64)]
    lib.isa_dispatch.restype = ctypes.c_bool
    return lib


class Memory:
    """Pages of this process that the device can access, at the host's address or at a different
    address."""

    def __init__(self, size: int, va: int | None = None) -> None:
        self.pages = mmap.mmap(-1, max(size, 1) + PAGE)
        self.size = size
        self.host = ctypes.addressof(ctypes.c_char.from_buffer(self.pages))
        self.va = self.host if va is None else va
        if not library().isa_map(self.va, size, self.host):
            raise MemoryError("too many mappings in one test")

    def unmap(self) -> None:
        library().isa_unmap(self.va)

    def write(self, data: bytes, offset: int = 0) -> None:
        self.pages[offset : offset + len(data)] = data

    def read(self, size: int | None = None, offset: int = 0) -> bytes:
        return self.pages[offset : offset + (self.size if size is None else size)]


@dataclass(frozen=True)
class Kernel:
    object: int
    kernarg_size: int
    group_size: int
    private_size: int


class CodeObject:
    """A code object, loaded into memory as ROCr loads it: segments are copied, and addresses are
    relocated."""

    R_ABS64, R_RELATIVE64 = 3, 13

    def __init__(self, image: bytes) -> None:
        self.image = image
        self._read_headers()
        self.memory = Memory(self.span)
        for offset, va, size in self.loads:
            self.memory.write(image[offset : offset + size], va)
        self.symbols = self._read_symbols()
        self._relocate()

    def _read_headers(self) -> None:
        phoff, shoff = struct.unpack_from("<QQ", self.image, 32)
        phentsize, phnum, shentsize, shnum = struct.unpack_from("<HHHH", self.image, 54)
        self.loads: list[tuple[int, int, int]] = []
        self.span = 0
        for n in range(phnum):
            kind, _, offset, va, _, filesz, memsz, _ = struct.unpack_from(
                "<IIQQQQQQ", self.image, phoff + n * phentsize
            )
            if kind == 1:
                self.loads.append((offset, va, filesz))
                self.span = max(self.span, va + memsz)
        self.sections = [
            struct.unpack_from("<IIQQQQIIQQ", self.image, shoff + n * shentsize)
            for n in range(shnum)
        ]

    def _name(self, table: int, offset: int) -> str:
        start = self.sections[table][4] + offset
        return self.image[start : self.image.index(b"\0", start)].decode()

    def _read_symbols(self) -> dict[str, int]:
        symbols = {}
        for section in self.sections:
            if section[1] == 11:  # SHT_DYNSYM
                for at in range(section[4], section[4] + section[5], 24):
                    name, _, _, _, value, _ = struct.unpack_from("<IBBHQQ", self.image, at)
                    symbols[self._name(section[6], name)] = value
        return symbols

    def _relocate(self) -> None:
        for section in self.sections:
            if section[1] != 4:  # SHT_RELA
                continue
            table = self.sections[section[6]]
            for at in range(section[4], section[4] + section[5], 24):
                where, info, addend = struct.unpack_from("<QQq", self.image, at)
                value = addend
                if info & 0xFFFFFFFF == self.R_ABS64:
                    entry = table[4] + 24 * (info >> 32)
                    value += struct.unpack_from("<Q", self.image, entry + 8)[0]
                elif info & 0xFFFFFFFF != self.R_RELATIVE64:
                    raise ValueError(f"relocation {info & 0xFFFFFFFF} is not known")
                self.memory.write(struct.pack("<Q", (self.memory.va + value) % 2**64), where)

    def text(self) -> bytes:
        for section in self.sections:
            if section[1] == 1 and section[2] & 4:  # PROGBITS, executable
                return self.image[section[4] : section[4] + section[5]]
        return b""

    def kernel(self, name: str) -> Kernel:
        va = self.symbols[name + ".kd"]
        group, private, kernarg = struct.unpack("<III", self.memory.read(12, va))
        return Kernel(self.memory.va + va, kernarg, group, private)


def dispatch(
    target: str,
    kernel: Kernel,
    grid: Sequence[int],
    block: Sequence[int],
    arguments: bytes,
    dimensions: int = 3,
) -> None:
    """Runs a kernel over a grid of work-items, and raises Fault if the kernel faults."""
    lib = library()
    grid3, block3 = [*grid, 1, 1][:3], [*block, 1, 1][:3]
    kernarg = Memory(max(kernarg_size(arguments, kernel), 16))
    implicit = struct.pack("<IIIHHHHHHQQQQQQH", *implicit_arguments(grid3, block3))
    kernarg.write(arguments + b"\0" * (-len(arguments) % 8) + implicit)
    packet = struct.pack(
        "<HHHHHHIIIIIQQQQ",
        2 | 1 << 8,
        dimensions,
        *block3,
        0,
        *grid3,
        kernel.private_size,
        kernel.group_size,
        kernel.object,
        kernarg.va,
        0,
        0,
    )
    buffer = ctypes.create_string_buffer(packet, 64)
    text = ctypes.create_string_buffer(1024)
    address = ctypes.c_uint64()
    good = lib.isa_dispatch(target.encode(), buffer, text, len(text), ctypes.byref(address))
    kernarg.unmap()
    if not good:
        raise Fault(text.value.decode(), address.value, lib.isa_fault_kind())


def kernarg_size(arguments: bytes, kernel: Kernel) -> int:
    return max(len(arguments) + 8 + 128, kernel.kernarg_size)


def implicit_arguments(grid: Sequence[int], block: Sequence[int]) -> list[int]:
    """Returns the implicit arguments of code object v5. Kernels of code object v4 read the grid and
    block sizes from the dispatch packet."""
    counts, rest = zip(*(divmod(g, b or 1) for g, b in zip(grid, block, strict=True)), strict=True)
    return [*counts, *block, *rest, 0, 0, 0, 0, 0, 0, 3]


def assemble(target: str, source: str) -> bytes:
    """Assembles a header and the text, and links the object file into a code object."""
    head = f'.amdgcn_target "amdgcn-amd-amdhsa--{target}"\n.amdhsa_code_object_version 4\n'
    with tempfile.TemporaryDirectory() as folder:
        obj, out = Path(folder) / "x.o", Path(folder) / "x.hsaco"
        subprocess.run(
            [
                *("llvm-mc-22", "-triple=amdgcn-amd-amdhsa", f"-mcpu={target}"),
                *("-filetype=obj", "-o", str(obj)),
            ],
            input=head + source,
            text=True,
            check=True,
        )
        subprocess.run(["ld.lld-22", "-shared", "-o", str(out), str(obj)], check=True)
        return out.read_bytes()
