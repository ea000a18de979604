"""The command `mgpu-rt compare`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from mgpu_rt._cli import parameters, source
from mgpu_rt._cli.errors import CommandError

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
@parameters.promises
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
@parameters.lowering
@click.pass_context
def compare(
    ctx: click.Context,
    files: tuple[str, ...],
    device: str,
    exclusive: bool,
    lazy: bool,
    repeat: int,
    page: str | None,
    **wanted: Any,
) -> None:
    """Compare two runs, function by function.

    BEFORE and AFTER are files from `mgpu-rt run --stats-json`. Compare runs PROGRAM twice, with
    stock's behaviour and with the cache; the program's output goes to stderr, at the end of each
    run. A line says whether the outputs are equal, and another if the exit statuses differ. The
    ratio is the time before divided by the time after; on the emulated GPU there is none.
    "–" stands for a value that was not counted, and for the ratio of fewer than 100 calls. If calls
    failed, graphs ran or the sides made different calls, totals have no ratio, and rows with
    differing counts have none.

    Exit status 1: the outputs differ, also because the program prints times. Or calls failed, which
    the first lines name. Or the sides end with different exit statuses and made different calls.
    """
    import os
    import shlex

    from mgpu_rt._cli import executable, preload, report
    from mgpu_rt._cli.files import check_writable
    from mgpu_rt._cli.stats import tables
    from mgpu_rt._cli.stats.statistics import read
    from mgpu_rt._cli.stats.tables import Side

    program, differ = ctx.meta["program"], False
    if not program and files and files[0].lower().endswith(".mlir"):  # one that is missing, too
        program, files = [*files], ()
    if bool(program) == bool(files) or (files and len(files) != 2 and (len(files) > 2 or not page)):
        raise click.UsageError(
            "name two statistics files, a .mlir file, or a program after --", ctx
        )
    if (exclusive or repeat > 1) and not program:
        raise click.UsageError("--exclusive and --repeat need a program after --", ctx)
    variables = parameters.promised(exclusive, lazy)
    if page:  # before a program runs in vain
        report.check()
    if page and page != "-":
        check_writable(page)
    if program:
        chosen = preload.choose(device, os.environ)
        program = source.command(program, chosen, **wanted)
        sides, told, differ = _measured(program, device, chosen, variables, repeat)
    elif len(files) == 2 and all(map(executable.is_elf, files)):
        diff = shlex.join(["mgpu-rt", "diff", "--", files[0], "--", files[1]])
        raise CommandError(
            f"'{files[0]}' and '{files[1]}' are programs: `{diff}` compares their results, and "
            "compare takes one program after --"
        )
    else:
        names = ("before", "after") if len(files) == 2 else ("this run",)
        sides = [Side(name, read(file), file) for name, file in zip(names, files, strict=True)]
        told = [tables.ONCE] if tables.has_ratios(sides) else []
    if page:
        _write(page, program, sides, told)
    if page != "-" and len(files) != 1:
        click.echo("\n".join([*tables.lines(sides), *(["", *told] if told else [])]))
    if differ or any(side.run.failed for side in sides):
        ctx.exit(1)


def _measured(
    program: list[str], device: str, chosen: str, variables: dict[str, str], repeat: int
) -> tuple[list[Side], list[str], bool]:
    """Runs the program. Returns a run of each side, sentences about the runs, and whether the runs
    print different output or one side has stopped early."""
    import os

    from mgpu_rt._cli import source
    from mgpu_rt._cli.stats import runs, tables
    from mgpu_rt._cli.stats.statistics import warning

    given = {name: os.environ[name] for name in _FOR_CACHES if os.environ.get(name)}
    if given.get("MGPU_RT_CACHE") == "off":
        del given["MGPU_RT_CACHE"]
    given |= variables
    how = " ".join(
        _OPTIONS[name] if name in variables else f"{name}={value}" for name, value in given.items()
    )
    modes = (runs.STOCK, runs.Mode(how or "mgpu_rt", given))
    found = runs.measure(program, device, modes, repeat)
    sides = [
        tables.Side(name, runs.middle(each).statistics, mode.how)
        for name, each, mode in zip(("before", "after"), found, modes, strict=True)
    ]
    again = [runs.command_in(mode, program, chosen) for mode in modes]
    ending = runs.status_sentence(found, again)
    stopped = bool(ending) and tables.made_other_calls(side.run for side in sides)
    seconds = ([run.seconds for run in each] for each in found)
    why = warning(side.run for side in sides)
    why = "a side stopped early, so no gain is shown" if stopped else why
    told = [ending] if ending else []
    if repeat > 1:
        told.append(runs.sentence(*seconds, why))
    elif tables.has_ratios(sides):
        told.append(tables.ONCE)
    if "MGPU_RT_SYNC" in variables and not sides[-1].run.postponed:
        told.append(runs.NEVER_LAZY)
    check = source.command_to_run(program, chosen, "check")
    told.append(runs.output_sentence(found, check, how))
    return sides, told, stopped or not runs.print_alike(found)


#: The option that sets a variable.
_OPTIONS = {"MGPU_RT_EXCLUSIVE": "--exclusive", "MGPU_RT_SYNC": "--lazy"}

#: The variables that change only the second side, which has the caches.
_FOR_CACHES = (
    "MGPU_RT_CACHE", "MGPU_RT_POLICY", "MGPU_RT_MODULE_LIMIT", "MGPU_RT_STREAM_LIMIT",
    "MGPU_RT_MEMORY_LIMIT", *_OPTIONS,
)  # fmt: skip


def _write(out: str, program: list[str], sides: list[Side], notes: list[str]) -> None:
    import shlex

    from mgpu_rt._cli import report

    line = f"{shlex.join(map(source.named, program))}, run with " if program else ""
    sides = [side._replace(source=f"{line}{side.source}") for side in sides]
    report.write(out, sides, notes)
    if out != "-":
        click.echo(f"mgpu-rt: wrote {out}", err=True)
