"""Builds host objects and executables, and extracts device images from lowered programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from mgpu_rt._functions import sidecar
from mgpu_rt._images import elf
from mgpu_rt._lowering import graph_functions, steps, toolchain
from mgpu_rt._lowering.pipelines import Pipeline
from mgpu_rt._lowering.steps import Step
from mgpu_rt._lowering.text import function_types
from mgpu_rt._lowering.toolchain import Tool


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
    """Compiles a program to a position-independent object file. The library replays the functions
    in ``graphs_of`` as graphs. With ``typed``, the file also contains the functions' types, which
    Python needs for calls. Raises ToolchainMissing, LoweringFailed, ValueError."""
    graph_functions.check(text, graphs_of)
    types = (lambda: function_types(text, pipeline.device_llvm)) if typed else None
    return steps.run(object_steps(pipeline, graphs_of, types), text.encode())


def object_steps(
    pipeline: Pipeline, graphs_of: Sequence[str] = (), types: Types | None = None
) -> list[Step]:
    """Returns the steps of host_object(). Raises ToolchainMissing."""
    # Functions that LLVM 15 lowers take bare pointers, which do not tell Python the sizes of
    # arrays.
    types = None if pipeline.llvm == 15 else types
    split = pipeline.coroutines
    return [*pipeline.steps(), *_compile_steps(pipeline.llvm, graphs_of, types, split=split)]


def compile_dialect(dialect: bytes, llvm: int, graphs_of: Sequence[str] = ()) -> bytes:
    """Returns the object file that host_object() returns, but for a program that is already in the
    LLVM dialect."""
    return steps.run(_compile_steps(llvm, graphs_of), dialect)


def check_dialect(dialect: bytes, llvm: int) -> None:
    """Raises LoweringFailed if a program holds operations that are not of the LLVM dialect, or
    casts that such operations left."""
    toolchain.run([toolchain.tool("mlir-translate", llvm), "--mlir-to-llvmir"], dialect)


def _compile_steps(
    llvm: int, graphs_of: Sequence[str], types: Types | None = None, *, split: bool = False
) -> list[Step]:
    """Returns the steps from the LLVM dialect to an object file. With ``split``, opt splits the
    coroutines of the async dialect, which llc cannot compile."""
    translate = Step([toolchain.tool("mlir-translate", llvm), "--mlir-to-llvmir"])
    wrap = Step(
        edit=lambda ir: graph_functions.wrap(ir.decode(), graphs_of).encode(),
        words=f"puts {', '.join(graphs_of)} into wrappers that replay a graph",
    )
    add_types = Step(
        edit=lambda ir: sidecar.append_to(ir.decode(), types() if types else {}).encode(),
        words="adds the types of the functions, by which Python calls them",
    )
    compile_it = [toolchain.tool("llc", llvm), "-O2", "-filetype=obj"]
    compile_it += ["-relocation-model=pic", "-o", "-"]
    edits = [*([wrap] if graphs_of else []), *([add_types] if types else [])]
    if split:
        edits.append(Step([toolchain.tool("opt", llvm), "-O1", "-S"]))
    return [translate, *edits, Step(compile_it)]


def link(
    objects: Sequence[Path],
    *,
    libraries: Sequence[Path],
    rpath: Sequence[Path] = (),
    others: Sequence[str] = (),
    out: Path,
) -> Path:
    """Links objects into an executable with the command from link_command(), and returns the
    executable's path. Raises ToolchainMissing, LoweringFailed."""
    out.parent.mkdir(parents=True, exist_ok=True)
    toolchain.run(link_command(objects, libraries, rpath, others, out))
    return out


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


def undefined(path: Path) -> set[str]:
    """Returns the undefined symbols of an object file."""
    return set(elf.read(path.read_bytes()).undefined)


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
