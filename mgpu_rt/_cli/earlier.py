"""Defines the earlier names of commands, which this release still accepts. An earlier command
prints the name of its replacement, and runs the replacement."""

from __future__ import annotations

from typing import Any

import click

from mgpu_rt._cli import parameters


def _say(ctx: click.Context, now: str) -> None:
    old = ctx.command_path.partition(" ")[2]
    click.echo(f"mgpu-rt: write `mgpu-rt {now}`: the next release has no `{old}`", err=True)


def _now(ctx: click.Context, command: str, option: str, **given: Any) -> None:
    """Prints the new command's name, and runs the new command."""
    _say(ctx, f"{command} {option}")
    group = ctx.find_root().command
    assert isinstance(group, click.Group)
    ctx.invoke(group.commands[command], **given)


@click.command(hidden=True)
@click.pass_context
def abi(ctx: click.Context) -> None:
    """Show what `config --abi` shows."""
    _now(ctx, "config", "--abi", abi=True)


@click.command(hidden=True)
@click.pass_context
def path(ctx: click.Context) -> None:
    """Print what `config --path` prints."""
    _now(ctx, "config", "--path", path=True)


@click.command(hidden=True)
@click.argument("file", type=parameters.PATH)
@click.option("-o", "--out", type=parameters.PATH, default="-")
@click.pass_context
def trace(ctx: click.Context, file: str, out: str) -> None:
    """Write what `stats FILE -o OUT` writes."""
    _now(ctx, "stats", "-o", file=file, out=out)


@click.command(hidden=True, cls=parameters.FilesOrProgram)
@click.argument("files", nargs=-1, type=parameters.PATH)
@click.option("-o", "--out", type=parameters.PATH, default="report.html")
@parameters.device("As for `mgpu-rt run`.")
@click.pass_context
def report(ctx: click.Context, files: tuple[str, ...], out: str, device: str) -> None:
    """Write only the page of `compare --report PAGE`."""
    from mgpu_rt._cli.compare import write_report

    program = ctx.meta["program"]
    if bool(program) == bool(files):
        raise click.UsageError("name files of statistics and traces, or a program after --", ctx)
    _say(ctx, "compare --report")
    write_report(program, files, device, out)


@click.command(hidden=True, context_settings={"allow_interspersed_args": False})
@parameters.device("As for `mgpu-rt run`.")
@click.option("--kernel", default="*")
@click.option("--nth", type=click.IntRange(min=0), default=1)
@click.option("-o", "--out", type=parameters.PATH, default="recording")
@click.argument("program", type=parameters.PATH)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def record(ctx: click.Context, out: str, **given: Any) -> None:
    """Record what `run --record FOLDER` records."""
    _now(ctx, "run", "--record", record=out, **given)


@click.group(hidden=True)
def softgpu() -> None:
    """Offer only the subcommand `install`."""


@softgpu.command()
@click.argument("version")
@click.pass_context
def install(ctx: click.Context, version: str) -> None:
    """Fetch what `doctor --install VERSION` fetches."""
    _now(ctx, "doctor", "--install", version=version)


COMMANDS = (abi, path, trace, report, record, softgpu)
