"""The command `mgpu-rt diff`."""

from __future__ import annotations

from typing import Any

import click

from mgpu_rt._cli import parameters, source
from mgpu_rt._cli.errors import CommandError


@click.command(cls=parameters.FilesOrProgram)
@click.argument(
    "words", nargs=-1, metavar="-- BEFORE [ARGUMENTS]... [-- AFTER [ARGUMENTS]...]", required=False
)
@click.option(
    "--device",
    default="auto",
    show_default=True,
    metavar="DEVICE[,DEVICE]",
    help="The device for both programs, or two devices: A,B. The names are those of `mgpu-rt run`.",
)
@parameters.comparison
@parameters.lowering
@click.pass_context
def diff(
    ctx: click.Context,
    words: tuple[str, ...],
    device: str,
    tolerance: float | None,
    ulps: int,
    dtype: str | None,
    **wanted: Any,
) -> None:
    """Find the first launch that leaves different results in the two programs.

    \b
    mgpu-rt diff [OPTIONS] -- BEFORE [ARGUMENTS]... -- AFTER [ARGUMENTS]...
    mgpu-rt diff [OPTIONS] --device A,B -- PROGRAM [ARGUMENTS]...
    mgpu-rt diff [OPTIONS] BEFORE.mlir AFTER.mlir

    Each program may run several times, with its output on stderr. Exit status 0: all results are
    equal; 1: some differ; 2: diff could not compare all results, and a line gives the reason.
    """
    import tempfile
    from pathlib import Path

    from mgpu_rt._cli import preload
    from mgpu_rt._cli.diff.search import search, side
    from mgpu_rt._packages import numpy_for
    from mgpu_rt._recordings.difference import Allowed
    from mgpu_rt._recordings.launches import Damaged

    programs = ctx.meta["program"]
    if words and not programs and all(word.lower().endswith(".mlir") for word in words):
        if len(words) > 2:
            raise CommandError(f"'{words[2]}' is a third program: {_HOW}")
        programs = [words[0], *(word for each in words[1:] for word in ("--", each))]
    elif words:
        raise CommandError(f"'{words[0]}' needs -- before it: {_HOW}")
    commands = _programs(programs, device)
    try:
        numpy_for("mgpu-rt diff")
        (allowed := Allowed(tolerance, ulps, dtype)).check()
    except (ImportError, ValueError) as error:
        raise CommandError(str(error)) from None
    allowed = allowed._replace(dtype=dtype or "f32")  # elements of which a line prints the first
    on = ([preload.announced(each) for each in device.split(",")] * 2)[:2]
    sides = [
        side(name, source.command(command, each, **wanted), each)
        for name, command, each in zip(("before", "after"), commands, on, strict=True)
    ]
    try:
        with tempfile.TemporaryDirectory(prefix="mgpu-rt-diff-") as work:
            lines, status = search(sides, allowed, Path(work))
    except (Damaged, MemoryError) as error:
        raise CommandError(str(error) or "out of memory") from None
    click.echo("\n".join(lines))
    ctx.exit(status)


_HOW = "name two programs, as -- BEFORE -- AFTER, or --device A,B -- PROGRAM"


def _programs(words: list[str], device: str) -> tuple[list[str], list[str]]:
    from mgpu_rt._cli import preload

    names = device.split(",")
    for name in names:
        if why := preload.not_a_device(name):
            raise CommandError(f"--device {device}: {why}")
    at = words.index("--") if "--" in words else len(words)
    before, after = words[:at], words[at + 1 :]
    needs_two = at < len(words) or len(names) == 1
    if len(names) > 2 or not before or (needs_two and not after):
        raise CommandError(_HOW)
    return before, after or before
