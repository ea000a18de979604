"""The command `mgpu-rt compare`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mgpu_rt._cli import parameters, source

if TYPE_CHECKING:
    from mgpu_rt._cli.stats.tables import Side


@click.command(cls=parameters.FilesOrProgram)
@click.argument(
    "files",
    nargs=-1,
    type=parameters.PATH,
    metavar="BEFORE AFTER | PROGRAM.mlir | -- PROGRAM [ARGUMENTS]...",
)
@parameters.device("The device that runs PROGRAM, as for `mgpu-rt run`.")
@click.option(
    "--exclusive",
    is_flag=True,
    help="You declare that nothing else in the process calls HIP. Runs PROGRAM twice more, with "
    "--exclusive and with --exclusive --lazy, and compares the outputs.",
)
@click.option(
    "--repeat",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="Run each side N times, in turn. A line shows the median and the range of each side, and "
    "names a gain only if the ranges do not overlap. The tables show the run of the median.",
)
@click.option(
    "--report",
    "page",
    type=parameters.PATH,
    metavar="PAGE",
    help="Also write a page for a browser (- for stdout): times, memory, cache misses, advice. "
    "With --report one file of statistics is enough. The page needs no network.",
)
@source.options
@click.pass_context
def compare(
    ctx: click.Context,
    files: tuple[str, ...],
    device: str,
    exclusive: bool,
    repeat: int,
    page: str | None,
    wanted: source.Wanted,
) -> None:
    """Compare two runs, function by function.

    BEFORE and AFTER are files from `mgpu-rt run --stats-json`. Compare runs PROGRAM twice, with
    stock's behaviour and with the cache; the program's output goes to stderr. The ratio is the time
    before divided by the time after. "–" stands for a value that was not counted. If calls failed
    or graphs ran, totals have no ratio. If graphs ran, rows with differing counts have none, too.

    Exit status 1: calls failed; the first lines name these calls.
    """
    import os

    from mgpu_rt._cli import preload
    from mgpu_rt._cli.files import check_writable
    from mgpu_rt._cli.stats import tables
    from mgpu_rt._cli.stats.statistics import read
    from mgpu_rt._cli.stats.tables import Side

    program = ctx.meta["program"]
    if not program and files and source.is_mlir(files[0]):
        program, files = [*files], ()
    if bool(program) == bool(files) or (files and len(files) != 2 and (len(files) > 2 or not page)):
        raise click.UsageError("name two statistics files, or a program after --", ctx)
    if exclusive and not program:
        raise click.UsageError("--exclusive needs -- and a program", ctx)
    if repeat > 1 and (exclusive or not program):
        raise click.UsageError(_NO_REPEAT, ctx)
    if page and page != "-":
        check_writable(page)  # before a program runs in vain
    if program:
        chosen = preload.choose(device, os.environ)
        program = [source.executable(program[0], chosen, wanted), *program[1:]]
        sides, told, with_options = _measured(program, device, exclusive, repeat)
    else:
        names = ("before", "after") if len(files) == 2 else ("this run",)
        sides = [Side(name, read(file), file) for name, file in zip(names, files, strict=True)]
        told, with_options = [tables.ONCE] if len(files) == 2 else [], []
    if page:
        _write(page, program, sides, [*told, *with_options[-1:]])
    if page == "-" or len(files) == 1:
        return
    both = [side._replace(name=n) for n, side in zip(("before", "after"), sides, strict=False)]
    click.echo("\n".join([*tables.lines(both), *(["", *told] if told else []), *with_options]))
    if any(side.run.failed for side in sides):
        ctx.exit(1)


_NO_REPEAT = "--repeat is for one program; in place of --exclusive set MGPU_RT_EXCLUSIVE=on"


def _measured(
    program: list[str], device: str, exclusive: bool, repeat: int
) -> tuple[list[Side], list[str], list[str]]:
    """Runs the program. Returns a run of each mode, a sentence about the times, and lines about
    the gain of --exclusive."""
    from mgpu_rt._cli.stats import runs
    from mgpu_rt._cli.stats.statistics import devices
    from mgpu_rt._cli.stats.tables import ONCE, Side

    modes = runs.MODES if exclusive else runs.MODES[:2]
    names = [mode.name for mode in modes] if exclusive else ["before", "after"]
    found = runs.measure(program, device, modes, repeat)
    middles = [runs.middle(each) for each in found]
    sides = [
        Side(name, run.statistics, mode.how)
        for name, run, mode in zip(names, middles, modes, strict=True)
    ]
    if exclusive:
        return sides, [], [*runs.word_lines(middles)]
    if repeat == 1:
        return sides, [ONCE], []
    seconds = ([run.seconds for run in each] for each in found)
    warning = next((one.warning for one in devices(side.run for side in sides)), "")
    return sides, [runs.sentence(*seconds, warning)], []


def _write(out: str, program: list[str], sides: list[Side], notes: list[str]) -> None:
    import shlex

    from mgpu_rt._cli import report

    line = f"{shlex.join(map(source.named, program))}, run with " if program else ""
    sides = [side._replace(source=f"{line}{side.source}") for side in sides]
    report.write(out, sides, notes)
    if out != "-":
        click.echo(f"mgpu-rt: wrote {out}", err=True)
