"""The commands `mgpu-rt stats` and `mgpu-rt compare`."""

from __future__ import annotations

import click

from mgpu_rt.cli import parameters


@click.command()
@click.argument("file", type=parameters.PATH)
@parameters.as_json
def stats(file: str, as_json: bool) -> None:
    """Show statistics as tables.

    FILE comes from `mgpu-rt run --stats-json FILE`, also of a program that was killed or still
    runs. "–" stands for a value that was not counted.
    """
    from mgpu_rt.cli.stats import listing
    from mgpu_rt.cli.stats.statistics import read

    statistics = read(file)
    if as_json:
        parameters.show_json(statistics.raw)
    else:
        click.echo("\n".join(listing.lines(statistics)))


@click.command(cls=parameters.FilesOrProgram)
@click.argument(
    "files", nargs=-1, type=parameters.PATH, metavar="BEFORE AFTER | -- PROGRAM [ARGUMENTS]..."
)
@parameters.device("The device that runs PROGRAM, as for `mgpu-rt run`.")
@parameters.as_json
@click.pass_context
def compare(ctx: click.Context, files: tuple[str, ...], device: str, as_json: bool) -> None:
    """Compare two runs, function by function.

    BEFORE and AFTER are files from `mgpu-rt run --stats-json`. PROGRAM runs twice, with stock's
    behaviour and with the cache; its output goes to stderr. The ratio is the time before over the
    time after. "–" stands for a value that was not counted.

    Exit status 1: calls failed, which the first lines name.
    """
    from mgpu_rt.cli.stats import comparison, runs
    from mgpu_rt.cli.stats.statistics import read

    program = ctx.meta["program"]
    if bool(program) == bool(files) or (files and len(files) != 2):
        raise click.UsageError("name two statistics files, or -- and a program", ctx)
    if program:
        names, (before, after) = runs.NAMES, runs.compare(program, device)
    else:
        names, (before, after) = files, map(read, files)
    if as_json:
        parameters.show_json(comparison.as_dict(before, after))
    else:
        click.echo("\n".join(comparison.lines(names, before, after)))
    if before.failed or after.failed:
        ctx.exit(1)
