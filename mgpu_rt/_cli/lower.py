"""Implements `mgpu-rt lower`, which compiles MLIR to an object file, an executable, device code, or
input for mlir-runner."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from mgpu_rt._cli import parameters
from mgpu_rt._cli.errors import CommandError

if TYPE_CHECKING:
    from mgpu_rt._lowering.pipelines import Pipeline
    from mgpu_rt._lowering.steps import Step

_LINKED = ("executable", "library")
#: A main whose result `mgpu-rt run` prints.
_PRINTED = re.compile(r"^[^/\n]*\bfunc\.func @main\(\) -> (i64|index|f32|f64)\b", re.MULTILINE)


@click.command()
@click.argument("program", type=parameters.PATH)
@click.option(
    "-o",
    "--out",
    type=parameters.PATH,
    required=True,
    metavar="PATH",
    help="The file to write; -: stdout.",
)
@click.option(
    "--llvm",
    type=int,
    default=22,
    show_default=True,
    metavar="22|19",
    help="The LLVM release that lowers the program; 23, 21 and 20 work too, if you have their "
    "tools. A launch with its own stream and wait takes 5 calls of the runtime with LLVM 22, and 7 "
    "with LLVM 19; one in a chain of tokens takes 2 and 4. With 19 to 21, LLVM 22 compiles the "
    "kernels.",
)
@click.option(
    "--chip",
    help="The GPU: AMD's, such as gfx90a, or NVIDIA's, such as sm_90.  [default: gfx90a]",
)
@click.option(
    "--emit",
    type=click.Choice(["object", "executable", "library", "mlir", "image"]),
    default="object",
    show_default=True,
    help="An executable or a library is linked with mgpu_rt's library; Python calls a library's "
    "functions by mgpu_rt.Library. mlir writes the LLVM dialect, for mlir-runner. image "
    "writes the device code of the only gpu.module, for mgpuModuleLoad and mgpu_rt.Module: a code "
    "object; for NVIDIA a cubin, or PTX if ptxas is not in PATH.",
)
@click.option(
    "-g",
    "lines",
    is_flag=True,
    help="Add line tables: debuggers and `mgpu-rt check` then name the program's lines. For AMD's "
    "GPUs.",
)
@click.option(
    "--passes",
    type=click.Choice(["auto", "none"]),
    default="auto",
    show_default=True,
    help="auto: run MLIR's passes first that the program needs: tokens for synchronous gpu.alloc "
    "and gpu.memcpy, kernels for linalg, coroutines for async. A line says which. none: only the "
    "lowering's own.",
)
@click.option(
    "--link",
    "links",
    multiple=True,
    metavar="FILE|NAME",
    help="Link the program with this file or library, for --emit executable and library. FILE is "
    "an object file, an archive or a shared library. A name is a library of the system. LLVM's "
    "libraries that the program calls are added. May be given several times.",
)
@click.option(
    "--graph",
    "graphs",
    multiple=True,
    metavar="FUNCTION",
    help="Replay this function as a graph. The library builds a graph at the second call with "
    "equal arguments, and replays it at later calls. It keeps graphs for up to four sets of "
    "arguments, as for double buffers; a function whose arguments always change runs without a "
    "graph. You promise that the function's host code only submits work: it reads no memory that "
    "kernels or copies write, copies only from and to host memory that lives on, and returns "
    "nothing. `mgpu-rt run --stats` counts the replays. May be given several times.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Print the commands of MLIR's and LLVM's tools for a shell, and run none of them.",
)
def lower(
    program: str,
    out: str,
    llvm: int,
    chip: str | None,
    emit: str,
    lines: bool,
    passes: str,
    links: tuple[str, ...],
    graphs: tuple[str, ...],
    dry_run: bool,
) -> None:
    """Lower an MLIR program to an object file.

    The command uses this machine's LLVM. PROGRAM is text with gpu.launch, with gpu.module and
    gpu.launch_func, or with linalg on memrefs; "-" stands for stdin. `mgpu-rt run PROGRAM.mlir`
    lowers and runs a program in one step.

    If MLIR refuses the program, the command prints MLIR's own error message. Exit status 2: the
    command wrote no file.
    """
    from mgpu_rt._cli import files
    from mgpu_rt._cli.refusals import explained
    from mgpu_rt._lowering import pipelines, preparation

    if links and emit not in _LINKED:
        raise CommandError(
            "--link is for --emit executable and library: other forms are not linked"
        )
    if graphs and emit in ("mlir", "image"):
        raise CommandError("--graph is for objects, executables and libraries")
    if os.path.isfile(program) and os.path.exists(out) and os.path.samefile(program, out):
        raise CommandError(f"-o {out} is the program itself: name another file")
    try:
        text = files.read_mlir(program)
        name = program if program != "-" else "<stdin>"
        pipeline = pipelines.pipeline(llvm, chip, lines=name if lines else "")
        if passes == "auto":
            pipeline = _prepared(text, pipeline)
        else:
            preparation.check_targets(text)
    except ValueError as error:
        raise CommandError(str(error)) from None
    with explained(program, pipeline, "--dry-run"):
        if dry_run:
            script = _script(program, out, text, pipeline, emit, links, graphs)
            click.echo(f"(\n{script})")  # pasted into a shell, it changes nothing there
            return
        content = _content(text, pipeline, emit, links, graphs)
        _write(out, content, executable=emit in _LINKED)
    if emit == "executable" and (result := _PRINTED.search(text)):
        file = "FILE.mlir" if program == "-" else program  # run reads no stdin
        click.echo(
            f"mgpu-rt: {out} does not print main's result ({result[1]}): `mgpu-rt run {file}` does",
            err=True,
        )


def _prepared(text: str, pipeline: Pipeline) -> Pipeline:
    """Returns the pipeline with the passes that the program needs, and says which. Raises
    ValueError."""
    from mgpu_rt._lowering.preparation import preparation

    needed = preparation(text)
    result = needed.of(pipeline)
    for sentence in needed.told:
        click.echo(f"mgpu-rt: {sentence}", err=True)
    return result


def _steps(text: str, pipeline: Pipeline, emit: str, graphs: Sequence[str]) -> list[Step]:
    """Returns the steps of LLVM's tools that make the output; their input is the program. Raises
    ToolchainMissing, ValueError."""
    from mgpu_rt._lowering import object_files

    if emit == "image":
        return pipeline.device_steps()
    if emit == "mlir":
        return pipeline.steps()
    return object_files.object_steps(text, pipeline, graphs, typed=True)


def _content(
    text: str, pipeline: Pipeline, emit: str, links: Sequence[str], graphs: Sequence[str]
) -> bytes:
    """Runs LLVM's tools and the linker. Raises LoweringFailed, ToolchainMissing, ValueError."""
    from mgpu_rt._lowering import object_files, steps
    from mgpu_rt._lowering.text import only_image

    lowered = steps.run(_steps(text, pipeline, emit, graphs), text.encode())
    if emit == "image":
        return only_image(lowered.decode())
    if emit == "mlir":
        object_files.check_dialect(lowered, pipeline.llvm)
    if emit not in _LINKED:
        return lowered
    shared = emit == "library"
    return object_files.link({"program.o": lowered}, pipeline.llvm, links, shared=shared)


def _script(
    program: str, out: str, text: str, pipeline: Pipeline, emit: str, links: Sequence[str],
    graphs: Sequence[str],
) -> str:  # fmt: skip
    """Returns what _content() runs as shell commands. Raises ToolchainMissing, ValueError."""
    from mgpu_rt._lowering import object_files, steps

    chain = _steps(text, pipeline, emit, graphs)
    if emit == "image":
        lowered = steps.script(chain, program, out if out == "-" else f"{out}.mlir")
        return f"{lowered}# mgpu-rt itself: takes the image from gpu.binary's string\n"
    if emit not in _LINKED:
        return steps.script(chain, program, out)
    out = "program" if out == "-" else out
    folder = "./" if out.startswith(("-", "@")) else ""  # cc takes -x.o for an option
    compiled = f"{folder}{out}.o"
    shared = emit == "library"
    link = object_files.program_command([compiled], out, pipeline.llvm, links, shared=shared)
    return f"{steps.script(chain, program, compiled)}{shlex.join(map(str, link))}\n"


def _write(out: str, content: bytes, *, executable: bool) -> None:
    from mgpu_rt._cli import files

    files.write(out, content)
    if executable and os.path.isfile(out):  # a regular file, and not /dev/null
        mode = os.stat(out).st_mode
        os.chmod(out, mode | (mode & 0o444) >> 2)
