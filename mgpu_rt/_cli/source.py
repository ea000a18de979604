"""Lowers a program in MLIR for the commands that run programs. The cache keeps the executable,
which runs in the program's place."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import click

from mgpu_rt._cli.errors import CommandError


class Wanted(NamedTuple):
    llvm: int | None
    chip: str | None
    entry: str | None


def options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options for a program in MLIR; the command gets them as one argument `wanted`."""
    import functools

    @functools.wraps(command)
    def gathered(
        *arguments: Any, llvm: int | None, chip: str | None, entry: str | None, **others: Any
    ) -> Any:
        return command(*arguments, wanted=Wanted(llvm, chip, entry), **others)

    result: Callable[..., Any] = gathered
    for option in (
        click.option(
            "--entry",
            metavar="FUNCTION",
            help="If PROGRAM is a .mlir file: the function that runs. Its i32 result is the exit "
            "status; another integer or a float is printed.  [default: main]",
        ),
        click.option(
            "--chip",
            help="If PROGRAM is a .mlir file: the GPU to compile for, as for `mgpu-rt lower`.  "
            "[default: the device's]",
        ),
        click.option(
            "--llvm",
            type=int,
            metavar="22|19|15",
            help="If PROGRAM is a .mlir file: the LLVM release that lowers it.  [default: 22]",
        ),
    ):
        result = option(result)
    return result


def is_mlir(program: str) -> bool:
    return program.endswith(".mlir") and os.path.isfile(program)


def executable(program: str, device: str, wanted: Wanted, *, lines: bool = False) -> str:
    """Returns the program, or an executable for a program in MLIR; with ``lines`` it has line
    tables. ``device`` is a result of preload.choose. Prints what MLIR's passes made of it. Raises
    CommandError."""
    if not is_mlir(program):
        if any(wanted) and not program.endswith(".mlir"):  # a missing one is "not found"
            raise CommandError(
                f"'{program}' is not a .mlir file: --llvm, --chip and --entry are for one"
            )
        return program
    from pathlib import Path

    from mgpu_rt._cli import files
    from mgpu_rt._cli.refusals import explained
    from mgpu_rt._lowering import entry, pipelines

    text = files.read_mlir(program, "name a program in MLIR")
    stem, llvm = Path(program).stem, wanted.llvm or 22
    chip = wanted.chip or _chip(device, os.environ)
    name = program if lines and llvm != 15 and not chip.startswith("sm_") else ""
    try:
        pipeline = pipelines.pipeline(llvm, chip, lines=name)
    except ValueError as error:
        raise CommandError(str(error)) from None
    with explained(program, pipeline):
        made, needed = entry.executable(stem, text, pipeline, wanted.entry or "main")
    for sentence in () if str(made) in _SOURCES else needed.told:
        click.echo(f"mgpu-rt: {sentence}", err=True)
    _SOURCES[str(made)] = program, wanted
    return str(made)


#: The program in MLIR of each executable, and how it was lowered.
_SOURCES: dict[str, tuple[str, Wanted]] = {}


def named(program: str) -> str:
    """Returns the name of a program as the user gave it: that of a .mlir file in place of its
    executable."""
    return _SOURCES[program][0] if program in _SOURCES else program


def command_to_run(command: Sequence[str], device: str, by: str = "run") -> str:
    """Returns the command by which a user runs or checks a program. It has the options of the
    lowering."""
    import shlex

    _, wanted = _SOURCES.get(command[0], ("", Wanted(None, None, None)))
    words = ["mgpu-rt", by, "--device", device]
    for option, value in wanted._asdict().items():
        words += [f"--{option}", str(value)] if value is not None else []
    return shlex.join([*words, "--", *map(named, command)])


def _chip(device: str, base: Mapping[str, str]) -> str:
    """Returns the name of the device's GPU, as `mgpu-rt lower --chip` takes it. Raises
    CommandError."""
    from mgpu_rt._cli import hip_devices, preload, softgpu

    kind, base = preload.kind(device, base)
    if kind == "softgpu":
        return softgpu.targets(base)[0]
    try:
        target = hip_devices.of(device, base)["devices"][0]["target"].partition(":")[0]
    except CommandError as error:
        raise CommandError(f"name the GPU with --chip: {error.message}") from None
    if not target:
        raise CommandError("name the GPU with --chip: HIP does not name it")
    return target


def no_call(program: str) -> str:
    """Says that a program made no call, and how to find out why."""
    import shlex

    from mgpu_rt._cli import executable

    found = shlex.quote(executable.find(program))
    return (
        f"'{named(program)}' called none of the library's functions: `mgpu-rt inspect "
        f"{found}` shows whether MLIR lowered it for a GPU"
    )
