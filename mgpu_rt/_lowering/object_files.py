"""Builds host objects and executables, and extracts device images from lowered programs."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from mgpu_rt import _layout
from mgpu_rt._functions import sidecar
from mgpu_rt._lowering import graph_functions, launch_stack, steps, toolchain
from mgpu_rt._lowering.pipelines import Pipeline
from mgpu_rt._lowering.steps import Step
from mgpu_rt._lowering.text import function_types
from mgpu_rt._lowering.toolchain import Tool

#: The library with which programs are linked.
RUNTIME = _layout.PREFIX / "lib" / _layout.LIBRARY


def needs(pipeline: Pipeline) -> list[Tool]:
    """Returns LLVM's tools that host_object() runs."""
    return [*pipeline.needs(), *_own(pipeline)]


def tools(pipeline: Pipeline) -> list[Path]:
    """Returns the files of all tools that host_object() runs. Raises ToolchainMissing."""
    return [*pipeline.tools(), *(toolchain.tool(*need) for need in _own(pipeline))]


def _own(pipeline: Pipeline) -> list[Tool]:
    """Returns the tools that compile the LLVM dialect to the object file."""
    split = ["opt"] if pipeline.coroutines else []
    return [(name, pipeline.llvm) for name in ("mlir-translate", *split, "llc")]


#: The types of a program's functions, computed when they are needed.
Types = Callable[[], Mapping[str, str]]


def host_object(
    text: str, pipeline: Pipeline, graphs_of: Sequence[str] = (), *, typed: bool = False
) -> bytes:
    """Compiles a program to a position-independent object file. Raises ToolchainMissing,
    LoweringFailed, ValueError."""
    return steps.run(object_steps(text, pipeline, graphs_of, typed=typed), text.encode())


def object_steps(
    text: str, pipeline: Pipeline, graphs_of: Sequence[str] = (), *, typed: bool = False
) -> list[Step]:
    """Returns the steps of host_object(). The library replays the functions in ``graphs_of`` as
    graphs. With ``typed``, the file also contains the functions' types, which Python needs for
    calls. Raises ToolchainMissing, ValueError."""
    graph_functions.check(text, graphs_of)
    types = (lambda: function_types(text, pipeline.device_llvm)) if typed else None
    split = pipeline.coroutines
    return [*pipeline.steps(), *compile_steps(pipeline.llvm, graphs_of, types, split=split)]


def check_dialect(dialect: bytes, llvm: int) -> None:
    """Raises LoweringFailed if a program holds operations that are not of the LLVM dialect, or
    casts that such operations left."""
    toolchain.run([toolchain.tool("mlir-translate", llvm), "--mlir-to-llvmir"], dialect)


def compile_steps(
    llvm: int, graphs_of: Sequence[str] = (), types: Types | None = None, *, split: bool = False
) -> list[Step]:
    """Returns the steps from the LLVM dialect to an object file. With ``split``, opt splits the
    coroutines of the async dialect, which llc cannot compile."""
    translate = Step([toolchain.tool("mlir-translate", llvm), "--mlir-to-llvmir"])
    give_back = Step(
        edit=lambda ir: launch_stack.give_back(ir.decode()).encode(),
        words="gives the stack of each launch's arguments back, which a loop would use up",
    )
    wrap = Step(
        edit=lambda ir: graph_functions.wrap(ir.decode(), graphs_of).encode(),
        words="puts the functions of --graph into wrappers that replay a graph",
    )
    add_types = Step(
        edit=lambda ir: sidecar.append_to(ir.decode(), types() if types else {}).encode(),
        words="adds the types of the functions, by which Python calls them",
    )
    compile_it = [toolchain.tool("llc", llvm), "-O2", "-filetype=obj"]
    compile_it += ["-relocation-model=pic", "-o", "-"]
    edits = [give_back, *([wrap] if graphs_of else []), *([add_types] if types else [])]
    if split:
        edits.append(Step([toolchain.tool("opt", llvm), "-O1", "-S"]))
    return [translate, *edits, Step(compile_it)]


def link(
    files: Mapping[str, bytes], llvm: int, links: Sequence[str] = (), *, shared: bool = False
) -> bytes:
    """Links files into an executable or a shared library, by the command of program_command().
    Raises ToolchainMissing, LoweringFailed, ValueError."""
    with tempfile.TemporaryDirectory() as scratch:
        for name, content in files.items():
            Path(scratch, name).write_bytes(content)
        command = program_command([*files], "out", llvm, links, shared=shared)
        plain = {**os.environ, "LC_ALL": "C"}  # the commands read the linker's messages
        # The linker runs in the folder, so that its messages name the files without a path.
        toolchain.run(command, env=plain, folder=scratch)
        return Path(scratch, "out").read_bytes()


def program_command(
    objects: Sequence[str], out: str, llvm: int, links: Sequence[str], *, shared: bool
) -> list[Path | str]:
    """Returns the command that links a program with mgpu_rt's library and ``links``. It names all
    of LLVM's libraries, of which the linker takes those that the program calls."""
    present = [name for name in toolchain.SUPPORT if toolchain.library(name, llvm)]
    others, places = linked(links, llvm)
    called, more = linked(present, llvm)
    others += ["-Wl,--push-state,--as-needed", *called, "-Wl,--pop-state"]
    rpath = dict.fromkeys([RUNTIME.parent, *places, *more])
    return link_command(objects, [RUNTIME], [*rpath], others, out, shared=shared)


def link_command(
    objects: Sequence[Path | str],
    libraries: Sequence[Path],
    rpath: Sequence[Path],
    others: Sequence[str],
    out: Path | str,
    *,
    shared: bool = False,
) -> list[Path | str]:
    """Returns the command that links objects into an executable or a shared library. `libraries`
    are the files of the shared libraries to link against. ``others`` are further arguments of the
    linker, between the objects and the libraries.

    The executable names each library by SONAME. The loader searches for the library in
    LD_LIBRARY_PATH, and then in ``rpath``. The linker accepts undefined symbols in shared
    libraries, because another HIP release may provide the symbols at run time. Raises
    ToolchainMissing.
    """
    command: list[Path | str] = [toolchain.compiler(), *objects, *others, *libraries]
    command += ["-shared", "-Wl,-z,defs"] if shared else []
    command += ["-lm", "-Wl,--allow-shlib-undefined"]
    command += [f"-Wl,-rpath,{directory}" for directory in rpath]
    return [*command, "-o", out]


def linked(links: Sequence[str], llvm: int) -> tuple[list[str], list[Path]]:
    """Returns arguments for the linker, and the folders in which the program finds shared
    libraries. Raises ValueError for a file that does not exist."""
    arguments, rpath = [], []
    for link in links:
        path = Path(link)
        if path.is_file():
            arguments.append(str(path.resolve()))
            rpath += [path.resolve().parent] if ".so" in path.suffixes else []
        elif path.suffix in (".o", ".a", ".so") or "/" in link:
            raise ValueError(f"--link {link}: there is no such file")
        else:
            found = toolchain.library(link, llvm)
            arguments.append(str(found) if found else f"-l{link}")
            rpath += [found.parent] if found else []
    return arguments, list(dict.fromkeys(rpath))
