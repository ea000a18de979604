"""The results of lowering: host objects, executables, and the device images in them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from mgpu_rt.lowering import graph_functions, steps, toolchain
from mgpu_rt.lowering.pipelines import Pipeline
from mgpu_rt.lowering.steps import Step
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
    return steps.run(object_steps(pipeline, graphs_of), text.encode())


def object_steps(pipeline: Pipeline, graphs_of: Sequence[str] = ()) -> list[Step]:
    """The steps of host_object(). Raises ToolchainMissing."""
    return [*pipeline.steps(), *_compile_steps(pipeline.llvm, graphs_of)]


def compile_dialect(dialect: bytes, llvm: int, graphs_of: Sequence[str] = ()) -> bytes:
    """As host_object(), of a program in the LLVM dialect."""
    return steps.run(_compile_steps(llvm, graphs_of), dialect)


def _compile_steps(llvm: int, graphs_of: Sequence[str]) -> list[Step]:
    translate = Step([toolchain.tool("mlir-translate", llvm), "--mlir-to-llvmir"])
    wrap = Step(
        edit=lambda ir: graph_functions.wrap(ir.decode(), graphs_of).encode(),
        words=f"puts {', '.join(graphs_of)} into wrappers that replay a graph",
    )
    compile_it = [toolchain.tool("llc", llvm), "-O2", "-filetype=obj"]
    compile_it += ["-relocation-model=pic", "-o", "-"]
    return [translate, *([wrap] if graphs_of else []), Step(compile_it)]


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
    """Links objects into an executable: `link_command`. Raises ToolchainMissing,
    LoweringFailed."""
    out.parent.mkdir(parents=True, exist_ok=True)
    toolchain.run(link_command(objects, libraries, rpath, others, out))
    return out


def link_command(
    objects: Sequence[Path | str],
    libraries: Sequence[Path],
    rpath: Sequence[Path],
    others: Sequence[str],
    out: Path | str,
) -> list[Path | str]:
    """Links objects into an executable against shared libraries given by their files. ``others``
    are further arguments of the linker, between the two.

    The executable asks for each library by its SONAME and looks for it in LD_LIBRARY_PATH, then
    in ``rpath``. The linker does not look for the libraries' own dependencies: a library that was
    linked against one HIP may run over another. Raises ToolchainMissing.
    """
    command: list[Path | str] = [toolchain.compiler(), *objects, *others, *libraries]
    command += ["-lm", "-Wl,--allow-shlib-undefined"]
    command += [f"-Wl,-rpath,{directory}" for directory in rpath]
    return [*command, "-o", out]
