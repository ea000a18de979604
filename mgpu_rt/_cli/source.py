"""Lowers a program in MLIR for the commands that run programs. The cache keeps the executable,
which runs in the program's place."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

import click

from mgpu_rt._cli.errors import CommandError


def is_mlir(program: str) -> bool:
    return program.endswith(".mlir") and os.path.isfile(program)


def command(
    words: Sequence[str],
    device: str,
    *,
    llvm: int | None = None,
    chip: str | None = None,
    entry: str | None = None,
    lines: bool = False,
) -> list[str]:
    """Returns a program and its arguments. An executable takes the place of a program in MLIR; with
    ``lines`` it has line tables. ``device`` is a result of preload.choose. Prints what MLIR's
    passes made of it. Raises CommandError."""
    import shlex

    program, *arguments = words
    wanted = {"llvm": llvm, "chip": chip, "entry": entry}
    if not is_mlir(program):
        if any(wanted.values()) and not program.endswith(".mlir"):  # a missing one is "not found"
            raise CommandError(
                f"'{program}' is not a .mlir file: --llvm, --chip and --entry are for one"
            )
        return [*words]
    if arguments:
        told = f"'{program}' takes no arguments, but '{arguments[0]}' follows it"
        if is_mlir(arguments[0]):
            diff = shlex.join(["mgpu-rt", "diff", program, arguments[0]])
            told += f": `{diff}` compares the results of both"
        raise CommandError(told)
    from pathlib import Path

    from mgpu_rt._cli import files
    from mgpu_rt._cli.refusals import explained
    from mgpu_rt._lowering import entry as entries
    from mgpu_rt._lowering import pipelines

    text = files.read_mlir(program, "name a program in MLIR")
    chip = _chip(chip, device)
    name = program if lines and not pipelines.is_nvidia(chip) else ""
    try:
        pipeline = pipelines.pipeline(llvm or 22, chip, lines=name)
    except ValueError as error:
        raise CommandError(str(error)) from None
    form = ["--llvm", str(pipeline.llvm), "--chip", chip, *(["-g"] if name else [])]
    dry_run = shlex.join(["mgpu-rt", "lower", "--dry-run", *form, program, "-o", "-"])
    with explained(program, pipeline, f"`{dry_run}`"):
        made, needed = entries.executable(Path(program).stem, text, pipeline, entry or "main")
    for sentence in () if str(made) in _SOURCES else needed.told:
        click.echo(f"mgpu-rt: {sentence}", err=True)
    _SOURCES[str(made)] = program, wanted
    return [str(made)]


#: The program in MLIR of each executable, and how it was lowered.
_SOURCES: dict[str, tuple[str, dict[str, str | int | None]]] = {}


def named(program: str) -> str:
    """Returns the name of a program as the user gave it: that of a .mlir file in place of its
    executable."""
    return _SOURCES[program][0] if program in _SOURCES else program


def command_to_run(command: Sequence[str], device: str, by: str = "run") -> str:
    """Returns the command by which a user runs or checks a program. It has the options of the
    lowering."""
    import shlex

    _, wanted = _SOURCES.get(command[0], ("", {}))
    words = ["mgpu-rt", by, "--device", device]
    for option, value in wanted.items():
        words += [f"--{option}", str(value)] if value is not None else []
    return shlex.join([*words, "--", *map(named, command)])


def _chip(wanted: str | None, device: str) -> str:
    """Returns the GPU to compile for, as `mgpu-rt lower --chip` takes it: by default the device's.
    Raises CommandError."""
    from mgpu_rt._cli import hip_devices, preload, softgpu
    from mgpu_rt._lowering import pipelines

    kind, base = preload.kind(device, os.environ)
    if kind == "softgpu":
        emulated = softgpu.targets(base)
        name, *features = (wanted or emulated[0]).split(":")
        is_another = name in softgpu.TARGETS or pipelines.is_nvidia(name)
        if (is_another and name not in emulated) or {"xnack+", "sramecc-"} & {*features}:
            here = ", ".join(emulated)
            raise CommandError(f"--chip {wanted} is not the device's: {here}; name no chip")
        return wanted or emulated[0]
    if wanted:
        if device in ("hip", "cuda") and pipelines.is_nvidia(wanted) != (device == "cuda"):
            maker = "AMD's" if device == "hip" else "NVIDIA's"
            raise CommandError(f"--chip {wanted} is not the device's: {maker}; name no chip")
        return wanted
    try:
        target = hip_devices.of(device, base)["devices"][0]["target"].partition(":")[0]
    except CommandError as error:
        raise CommandError(f"name the GPU with --chip: {error.message}") from None
    if not target:
        raise CommandError("name the GPU with --chip: HIP does not name it")
    return target


_INTERPRETERS = r"(python[\d.]*|(ba|da|z|k)?sh|perl|ruby|node)$"


def no_call(program: str) -> str:
    """Says that a program made no call, and how to find out why. A script or an interpreter holds
    no device code, so there is nothing to inspect."""
    import shlex

    from mgpu_rt._cli import executable

    found = executable.find(program)
    way = f"`mgpu-rt inspect {shlex.quote(found)}` shows whether MLIR lowered it for a GPU"
    if executable.is_script(found) or re.match(_INTERPRETERS, os.path.basename(found)):
        way = (
            "its code must call mgpu_rt (docs/python.md), name its library to MLIR's JIT "
            "(docs/jit.md), or start a program that calls it"
        )
    return f"'{named(program)}' called none of the library's functions: {way}"
