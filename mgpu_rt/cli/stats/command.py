"""The commands `mgpu-rt stats` and `mgpu-rt compare`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from mgpu_rt.cli.problem import Problem, fail


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def stats(file: Path, as_json: bool) -> None:
    """Show statistics as tables.

    FILE is what `mgpu-rt run --stats-json FILE` has written; "–" is what was not counted.
    """
    from mgpu_rt.cli.stats import files, table

    try:
        statistics = files.read(file)
    except Problem as problem:
        fail(problem)
    if as_json:
        click.echo(json.dumps(statistics.raw, indent=2))
    else:
        click.echo("\n".join(table.lines(statistics)))


class _FilesOrProgram(click.Command):
    """What follows -- is a program with its arguments; click would not say that -- was there."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        at = args.index("--") if "--" in args else len(args)
        ctx.meta["program"] = args[at + 1 :]
        return super().parse_args(ctx, args[:at])


@click.command(cls=_FilesOrProgram)
@click.argument(
    "files",
    nargs=-1,
    type=click.Path(path_type=Path),
    metavar="BEFORE AFTER | -- PROGRAM [ARGUMENTS]...",
)
@click.option(
    "--device",
    type=click.Choice(["auto", "hip", "softgpu", "cuda"]),
    default="auto",
    show_default=True,
    help="Where PROGRAM runs, as for `mgpu-rt run`.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def compare(ctx: click.Context, files: tuple[Path, ...], device: str, as_json: bool) -> None:
    """Compare two runs, function by function.

    BEFORE and AFTER are files that `mgpu-rt run --stats-json` has written. PROGRAM is run twice,
    with stock's behaviour and with the cache; what it prints goes to stderr. The ratio says how
    many times as long the calls took before; "–" is what was not counted.
    """
    from mgpu_rt.cli.stats import comparison, runs
    from mgpu_rt.cli.stats.files import read

    program = ctx.meta["program"]
    if bool(program) == bool(files) or (files and len(files) != 2):
        raise click.UsageError("name two statistics files, or -- and a program", ctx)
    try:
        if program:
            names, (before, after) = runs.NAMES, runs.compare(program, device)
        else:
            names, (before, after) = (str(files[0]), str(files[1])), (*map(read, files),)
    except Problem as problem:
        fail(problem)
    if as_json:
        click.echo(json.dumps(comparison.as_dict(before, after), indent=2))
    else:
        click.echo("\n".join(comparison.lines(names, before, after)))
