"""The command `mgpu-rt stats`."""

from __future__ import annotations

import click

from mgpu_rt._cli import parameters


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
