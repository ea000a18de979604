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
    help="If FILE comes from `mgpu-rt run --trace FILE`, and the program was killed: write its "
    "Chrome trace to OUT (- for stdout), for ui.perfetto.dev. A program that exits writes "
    "the Chrome trace itself.",
)
@parameters.as_json
def stats(file: str, out: str | None, as_json: bool) -> None:
    """Show statistics as tables, or write the trace of a killed program.

    FILE comes from `mgpu-rt run --stats-json FILE`, even if the program was killed or still runs.
    "–" stands for a value that was not counted.
    """
    from mgpu_rt._cli.stats import tables
    from mgpu_rt._cli.stats.statistics import read, write_trace

    if out:
        return write_trace(file, out)
    statistics = read(file)
    if as_json:
        parameters.show_json(statistics.raw)
    else:
        click.echo("\n".join(tables.of_one(statistics)))
