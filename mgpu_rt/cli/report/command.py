"""The command `mgpu-rt report`."""

from __future__ import annotations

import click

from mgpu_rt.cli import parameters


@click.command(cls=parameters.FilesOrProgram)
@click.argument(
    "files", nargs=-1, type=parameters.PATH, metavar="FILE... | -- PROGRAM [ARGUMENTS]..."
)
@click.option(
    "-o",
    "--out",
    type=parameters.PATH,
    default="report.html",
    show_default=True,
    metavar="PAGE",
    help="The page to write, - for stdout.",
)
@parameters.device("The device that runs PROGRAM, as for `mgpu-rt run`.")
@click.pass_context
def report(ctx: click.Context, files: tuple[str, ...], out: str, device: str) -> None:
    """Write a page about a run for a browser: calls, times, memory, cache misses, advice.

    FILEs come from `mgpu-rt run` with --stats-json or --trace, in any mixture. Two files of a kind
    are before and after, in this order. PROGRAM runs twice, with stock's behaviour and with the
    cache; its output goes to stderr. The page is one file that needs no network.
    """
    from mgpu_rt.cli.files import check_writable
    from mgpu_rt.cli.report import format, inputs, page

    program = ctx.meta["program"]
    if bool(program) == bool(files):
        raise click.UsageError("name statistics and trace files, or -- and a program", ctx)
    if out != "-":
        check_writable(out)  # before a program runs for nothing
    found = inputs.of_program(program, device) if program else inputs.of_files(files)
    text = format.document(page.title(found), page.body(found))
    if out == "-":
        click.echo(text, nl=False)
    else:
        format.write(out, text)
        click.echo(f"mgpu-rt: wrote {out}", err=True)
