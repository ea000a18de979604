"""NVIDIA's cubins and PTX: targets, kernels' names, variables in global memory."""

from __future__ import annotations

import re

from mgpu_rt.images.elf import Elf
from mgpu_rt.images.model import Global, Image, Kernel
from mgpu_rt.images.writable import globals_of

_KERNEL = ".text."
_NEW_ABI = 8  # from it on, of CUDA 13, e_flags hold the target one byte further up

_VERSION = re.compile(rb"\.version\s+(\d+\.\d+)")
_TARGET = re.compile(rb"\.target\s+(\w+)")
_ENTRY = re.compile(rb"(?:^|[\s;}])\.entry\s+([^\s(;{]+)")
_VARIABLE = re.compile(
    rb"\.global(?![\w$%])[^;(]*?\.[busf](\d+)\s+([A-Za-z_$%][\w$%]*)((?:\[\d*\])*)\s*[;=]"
)


def describe_cubin(image: Image, elf: Elf) -> None:
    """Adds what a cubin says of itself."""
    new = elf.header.abi_version >= _NEW_ABI
    image.target = f"sm_{elf.header.flags >> (8 if new else 0) & 0xFF}"
    names = [s.name.removeprefix(_KERNEL) for s in elf.sections if s.name.startswith(_KERNEL)]
    image.kernels = [Kernel(name) for name in names]
    image.globals = globals_of(elf)


def describe_ptx(image: Image) -> None:
    """Adds what can be told of PTX from its text."""
    text = image.content
    version, target = _VERSION.search(text), _TARGET.search(text)
    image.version = _words(version[1]) if version else None
    image.target = _words(target[1]) if target else None
    image.kernels = [Kernel(_words(name)) for name in dict.fromkeys(_ENTRY.findall(text))]
    image.globals = [
        Global(_words(name), _bytes(bits, dimensions))
        for bits, name, dimensions in _VARIABLE.findall(text)
    ]


def _bytes(bits: bytes, dimensions: bytes) -> int | None:
    """Of a variable; None if its size follows from what it begins with."""
    size = int(bits) // 8
    for dimension in re.findall(rb"\[(\d*)\]", dimensions):
        if not dimension:
            return None
        size *= int(dimension)
    return size


def _words(text: bytes) -> str:
    return text.decode(errors="replace")
