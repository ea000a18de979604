"""The library by which programs print their results."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path

from mgpu_rt._lowering import cache, toolchain

SOURCE = Path(__file__).with_name("print.c")
NAME = "libmgpu_print.so"


def print_library() -> Path:
    """Builds a shared library that contains printF32, printI64, printMemrefF32 and similar
    functions.

    A program links this library, or mlir-runner loads this library by --shared-libs. Unlike LLVM's
    own library, this library does not load LLVM.
    """
    kept = cache.kept(
        "libmgpu_print",
        ".so",
        (SOURCE.read_text(), "print"),
        lambda: [toolchain.compiler()],
        _compiled,
    )
    # A linked program requests the file NAME, but the name of the cached file contains a hash.
    plain = kept.with_suffix("") / NAME
    if not plain.exists():
        plain.parent.mkdir(exist_ok=True)
        with contextlib.suppress(FileExistsError):  # another process has just made it
            plain.symlink_to(kept)
    return plain


def _compiled() -> bytes:
    with tempfile.TemporaryDirectory() as scratch:
        result = Path(scratch, NAME)
        flags = ["-std=c11", "-O2", "-fPIC", "-shared", f"-Wl,-soname,{NAME}"]
        toolchain.run([toolchain.compiler(), *flags, SOURCE, "-o", result])
        return result.read_bytes()
