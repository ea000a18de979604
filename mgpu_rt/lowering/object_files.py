"""The results of lowering: host objects, executables, and the device images in them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from mgpu_rt.lowering import graph_functions, toolchain
from mgpu_rt.lowering.pipelines import Pipeline
from mgpu_rt.lowering.strings import unescape
from mgpu_rt.lowering.toolchain import Tool

_BINARY = re.compile(
    r'gpu\.binary @([\w.$-]+).*?\b(?:bin|assembly) = "((?:[^"\\]|\\.)*)"', re.DOTALL
)


def needs(pipeline: Pipeline) -> list[Tool]:
    """LLVM's tools that host_object() runs."""
    return [*pipeline.needs(), *_own(pipeline)]


def tools(pipeline: Pipeline) -> list[Path]:
    """The files of all tools that host_object() runs. Raises ToolchainMissing."""
    return [*pipeline.tools(), *(toolchain.tool(*need) for need in _own(pipeline))]


def _own(pipeline: Pipeline) -> list[Tool]:
    """The tools that make the object file from the LLVM dialect."""
    return [(name, pipeline.llvm) for name in ("mlir-translate", "llc")]


def host_object(text: str, pipeline: Pipeline, graphs_of: Sequence[str] = ()) -> bytes:
    """A position-independent object file of a program, in which functions of these names are
    replayed as graphs. Raises ToolchainMissing, LoweringFailed, ValueError."""
    graph_functions.check(text, graphs_of)
    return compile_dialect(pipeline.llvm_dialect(text), pipeline.llvm, graphs_of)


def compile_dialect(dialect: bytes, llvm: int, graphs_of: Sequence[str] = ()) -> bytes:
    """As host_object(), of a program in the LLVM dialect."""
    translate = [toolchain.tool("mlir-translate", llvm), "--mlir-to-llvmir"]
    compile_it = [toolchain.tool("llc", llvm), "-O2", "-filetype=obj"]
    compile_it += ["-relocation-model=pic", "-o", "-"]
    ir = toolchain.run(translate, dialect)
    if graphs_of:
        ir = graph_functions.wrap(ir.decode(), graphs_of).encode()
    return toolchain.run(compile_it, ir)


def device_images(device_part: str) -> dict[str, bytes]:
    """The images in what Pipeline.device_part() returned, by the name of their gpu.module."""
    return {name: unescape(code) for name, code in _BINARY.findall(device_part)}


def link(
    objects: Sequence[Path],
    *,
    libraries: Sequence[Path],
    rpath: Sequence[Path] = (),
    others: Sequence[str] = (),
    out: Path,
) -> Path:
    """Links objects into an executable against shared libraries given by their files. ``others``
    are further arguments of the linker, between the two.

    The executable asks for each library by its SONAME and looks for it in LD_LIBRARY_PATH, then
    in ``rpath``. The linker does not look for the libraries' own dependencies: a library that was
    linked against one HIP may run over another. Raises ToolchainMissing, LoweringFailed.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    command: list[Path | str] = [toolchain.compiler(), *objects, *others, *libraries]
    command += ["-lm", "-Wl,--allow-shlib-undefined"]
    command += [f"-Wl,-rpath,{directory}" for directory in rpath]
    toolchain.run([*command, "-o", out])
    return out
