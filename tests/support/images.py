"""Device images for the tests: real code objects, made by MLIR 22."""

from __future__ import annotations

import functools
import os
import struct

from bench import PROGRAMS
from mgpu_rt.lowering import lower

#: What the HIP of this process runs.
CHIP = "sm_90" if os.environ.get("MGPU_RT_HIP", "").endswith("/cuhip/libamdhip64.so") else "gfx90a"


@functools.cache
def code_object(program: str, module: str | None = None, chip: str = CHIP) -> bytes:
    """The code object of bench/programs/<program>.mlir, or of the gpu.module named in it."""
    return lower.code_object(PROGRAMS / f"{program}.mlir", chip, module=module)


def bundle(*images: bytes) -> bytes:
    """A clang offload bundle of some code objects for amdgcn, behind an empty host entry."""
    names = [b"host-x86_64-unknown-linux--"]
    names += [b"hipv4-amdgcn-amd-amdhsa--gfx90a"] * len(images)
    contents = [b"", *images]
    header = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(names))
    at, table, body = 4096, b"", b""
    for name, content in zip(names, contents, strict=True):
        table += struct.pack("<QQQ", at + len(body), len(content), len(name)) + name
        body += content + bytes(-len(content) % 4096)
    return (header + table).ljust(at, b"\0") + body
