"""The commands `mgpu-rt stats` and `mgpu-rt compare`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mgpu_rt._cli import parameters

if TYPE_CHECKING:
    from mgpu_rt._cli.report.inputs import Run


@click.command()
@click.argument("file", type=parameters.PATH)
@click.option(
    "-o",
    "--out",
    type=parameters.PATH,
    metavar="OUT",
    help="If FILE is a recording: write its Chrome trace to OUT (- for stdout), for "
    "ui.perfetto.dev, or its statistics as JSON if it contains no trace.",
)
@parameters.as_json
def stats(file: str, out: str | None, as_json: bool) -> None:
    """Show statistics as tables, or convert a recording.

    FILE comes from `mgpu-rt run --stats-json FILE`. FILE may also be a recording, which
    MGPU_RT_STATS=FILE and MGPU_RT_TRACE=FILE leave, even if the program was killed or still runs.
    "–" stands for a value that was not counted.
    """
    from mgpu_rt._cli.stats import tables
    from mgpu_rt._cli.stats.statistics import convert, read

    if out:
        return convert(file, out)
    statistics = read(file)
    if as_json:
        parameters.show_json(statistics.raw)
    else:
        click.echo("\n".join(tables.of_one(statistics)))


@click.command(cls=parameters.FilesOrProgram)
@click.argument(
    "files", nargs=-1, type=parameters.PATH, metavar="BEFORE AFTER | -- PROGRAM [ARGUMENTS]..."
)
@parameters.device("The device that runs PROGRAM, as for `mgpu-rt run`.")
@click.option(
    "--exclusive",
    is_flag=True,
    help="You declare that nothing else in the process calls HIP. Runs PROGRAM twice more, with "
    "--exclusive and with --exclusive --lazy, and compares the outputs.",
)
@click.option(
    "--report",
    "page",
    type=parameters.PATH,
    metavar="PAGE",
    help="Also write a page for a browser (- for stdout): times, memory, cache misses, advice. "
    "The inputs may be statistics files and traces, of one run or two runs. The page needs "
    "no network.",
)
@parameters.as_json
@click.pass_context
def compare(
    ctx: click.Context,
    files: tuple[str, ...],
    device: str,
    exclusive: bool,
    page: str | None,
    as_json: bool,
) -> None:
    """Compare two runs, function by function.

    BEFORE and AFTER are files from `mgpu-rt run --stats-json`. Compare runs PROGRAM twice, with
    stock's behaviour and with the cache; the program's output goes to stderr. The ratio is the time
    before divided by the time after. "–" stands for a value that was not counted.

    Exit status 1: calls failed; the first lines name these calls.
    """
    from mgpu_rt._cli.stats import runs, tables
    from mgpu_rt._cli.stats.statistics import read

    program = ctx.meta["program"]
    if bool(program) == bool(files) or (files and not page and len(files) != 2):
        raise click.UsageError("name two statistics files, or a program after --", ctx)
    if exclusive and (page or not program):
        raise click.UsageError("--exclusive needs -- and a program, and writes no page", ctx)
    shown = write_report(program, files, device, page) if page else []
    if page == "-" or len(shown) == 1:
        return
    with_word = runs.with_word(program, device) if exclusive else []
    if shown:
        names = runs.NAMES if program else ("before", "after")
        before, after = (run.statistics for run in shown)
    elif with_word:
        names, (before, after) = runs.NAMES, (run.statistics for run in with_word[:2])
    elif program:
        names, (before, after) = runs.NAMES, runs.compare(program, device)
    else:
        names, (before, after) = files, map(read, files)
    if as_json:
        found = tables.as_dict(before, after)
        word = {"word": runs.word_as_dict(with_word)} if exclusive else {}
        parameters.show_json({**found, **word})
    else:
        click.echo("\n".join(tables.of_two(names, before, after)))
        if exclusive:
            click.echo("\n".join(runs.word_lines(with_word)))
    if any(run.failed for run in (before, after, *(run.statistics for run in with_word))):
        ctx.exit(1)


def write_report(program: list[str], files: tuple[str, ...], device: str, out: str) -> list[Run]:
    """Writes the page; returns the runs that the page shows."""
    from mgpu_rt._cli.files import check_writable
    from mgpu_rt._cli.report import format, inputs, page

    if out != "-":
        check_writable(out)  # before a program runs in vain
    found = inputs.of_program(program, device) if program else inputs.of_files(files)
    text = format.document(page.title(found), page.body(found))
    if out == "-":
        click.echo(text, nl=False)
    else:
        format.write(out, text)
        click.echo(f"mgpu-rt: wrote {out}", err=True)
    return found
