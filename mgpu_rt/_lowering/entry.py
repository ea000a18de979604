"""Lowers a program to an executable, whose main calls the entry function, and caches it."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

from mgpu_rt._images import elf
from mgpu_rt._lowering import cache, object_files, pipelines, preparation, toolchain
from mgpu_rt._lowering.pipelines import Pipeline
from mgpu_rt._lowering.preparation import Preparation
from mgpu_rt._lowering.text import code, function_types

#: For the type of an entry function's result: the type in C, and main's statements. As in C, an i32
#: is the status; mlir-runner prints the other results too. Floats have the digits that tell any two
#: of them apart.
_RESULTS = {
    "()": ("void", "entry(); return 0;"),
    "i32": (
        "int",
        "int result = entry(); if (result != (result & 255)) fprintf(stderr, "
        r'"mgpu-rt: the result is %d, and an exit status has 8 bits: return i64 to print it\n", '
        "result); return result;",
    ),
    "i64": ("long", r'printf("%ld\n", entry()); return 0;'),
    "index": ("long", r'printf("%ld\n", entry()); return 0;'),
    "f32": ("float", r'printf("%.9g\n", entry()); return 0;'),
    "f64": ("double", r'printf("%.17g\n", entry()); return 0;'),
}
#: A failed cf.assert prints its text and aborts, so lines must not wait in a buffer.
_MAIN = """\
#include <stdio.h>
{kind} entry(void) __asm__("entry.mlir");
int main(void) {{ setvbuf(stdout, 0, _IOLBF, BUFSIZ); {statements} }}
"""
#: A second symbol of the entry function: no other code has it, and C accepts it. The symbols of the
#: program's functions become local, because one may have a name of the C library, such as read.
_ENTRY = "entry.mlir"


def executable(
    stem: str, text: str, pipeline: Pipeline, entry: str = "main"
) -> tuple[Path, Preparation]:
    """Returns an executable in the cache, whose name is ``stem``, and what the lowering added to
    the pipeline.

    The executable is linked with mgpu_rt's library and with those of LLVM's libraries that its
    functions come from. Raises ToolchainMissing, LoweringFailed, ValueError.
    """
    needed = preparation.preparation(text)
    pipeline = needed.of(pipeline)
    runtime = str(object_files.RUNTIME)
    key = (pipelines.RECIPE, text, "executable", pipeline, entry, runtime)

    def tools() -> list[Path]:
        binutils = toolchain.other("objcopy", "binutils")
        return [*object_files.tools(pipeline), toolchain.compiler(), binutils]

    kept = cache.kept(stem, "", key, tools, lambda: _build(text, pipeline, entry), executable=True)
    if not os.access(kept, os.X_OK):
        raise ValueError(
            f"{kept.parent.parent} is mounted with noexec: set XDG_CACHE_HOME to a folder from "
            "which programs run"
        )
    return kept, needed


def _build(text: str, pipeline: Pipeline, entry: str) -> bytes:
    kind, statements = _result(text, entry, function_types(text, pipeline.device_llvm))
    with tempfile.TemporaryDirectory() as scratch:
        compiled = Path(scratch, "program.o")
        compiled.write_bytes(object_files.host_object(text, pipeline))
        objcopy = toolchain.other("objcopy", "binutils")
        added = f"{_ENTRY}={_place(compiled, entry)},function,global"
        toolchain.run(
            [objcopy, "--add-symbol", added, "--keep-global-symbol", _ENTRY, str(compiled)]
        )
        main = _MAIN.format(kind=kind, statements=statements).encode()
        files = {compiled.name: compiled.read_bytes(), "main.c": main}
        return object_files.link(files, pipeline.llvm)


def _place(compiled: Path, entry: str) -> str:
    """Returns a function's section and its offset there, as objcopy reads them."""
    read = elf.read(compiled.read_bytes())
    symbol = next(each for each in read.symbols if each.name == entry)
    section = next(each for each in read.sections if each.index == symbol.section)
    return f"{section.name}:{symbol.value}"


def _result(text: str, entry: str, types: Mapping[str, str]) -> tuple[str, str]:
    """Returns what main does with the entry's result: its type in C, and statements."""
    plain = [name for name, kind in types.items() if _returned(kind) in _RESULTS]
    if entry in plain:
        return _RESULTS[_returned(types[entry]) or ""]
    ways = (
        f"name one of {', '.join(sorted(plain))} with --entry"
        if plain
        else "call a function from Python by mgpu_rt.Library, or add a function without arguments, "
        "and name it with --entry"
    )
    if not types and re.search(r"^\s*llvm\.func\b[^\n]*\{", text, re.MULTILINE):
        raise ValueError(
            "the program is in the LLVM dialect already: run it by mlir-runner (docs/jit.md)"
        )
    if entry not in types:
        if re.search(rf"\bfunc\.func\b(?! private)[^@\n]*@{re.escape(entry)}\s*\(", code(text)):
            ways = "one is in an inner module, of which mgpu-rt runs none: move it out of it"
        raise ValueError(f"the program has no function {entry}: {ways}")
    raise ValueError(
        f"the function {entry} is {types[entry]}, but an entry takes nothing and returns nothing, "
        f"i32, i64, index, f32 or f64: {ways}"
    )


def _returned(kind: str) -> str | None:
    """Returns the result's type of a function without arguments; None if it has arguments."""
    arguments, _, result = kind.partition(" -> ")
    return result if arguments == "()" else None
