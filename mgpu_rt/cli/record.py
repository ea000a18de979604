"""mgpu-rt record: launches of a program, kept to be made again by themselves (replay.py)."""

from __future__ import annotations

import os

import click

from mgpu_rt.cli import parameters
from mgpu_rt.cli.errors import CommandError

_DEVICE = "As for `mgpu-rt run`."


@click.command(context_settings={"allow_interspersed_args": False})
@parameters.device(_DEVICE)
@click.option("--kernel", metavar="PATTERN", default="*", help="The kernels, by default all.")
@click.option(
    "--nth",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="Which launch of each kernel; 0: all.",
)
@click.option(
    "-o",
    "--out",
    type=parameters.PATH,
    default="recording",
    show_default=True,
    metavar="FOLDER",
    help="A folder that is not there yet, or is empty.",
)
@click.argument("program", type=parameters.PATH)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def record(
    device: str, kernel: str, nth: int, out: str, program: str, arguments: tuple[str, ...]
) -> None:
    """Run PROGRAM and keep launches of its kernels, with the memory that they read and wrote.

    The exit status is the program's. `mgpu-rt replay FOLDER` makes a launch again.
    """
    from mgpu_rt.cli import executable, files, overrides, preload
    from mgpu_rt.runtime import folder

    executable.check(program, as_shell=True)
    environment = preload.environment(preload.announced(device))
    try:
        folder.claim(os.path.abspath(out))
    except FileExistsError:
        raise CommandError(f"'{out}' is there already: name another folder") from None
    except OSError as error:
        raise files.unwritable(out, error) from None
    environment |= overrides.environment(None, (f"record={out}",), kernel, nth)
    environment[preload.SHOWN_OF] = str(os.getpid())
    executable.execute(program, list(arguments), environment)
