"""The command `mgpu-rt stats`."""

from __future__ import annotations

import click

from mgpu_rt._cli import parameters


def _address(_context: object, _option: object, text: str | None) -> int | None:
    if text is None:
        return None
    try:
        address = int(text, 16)
    except ValueError:
        address = -1
    if not 0 <= address < 1 << 64:
        raise click.BadParameter(f"'{text}' is not an address such as 0x7f0012345000")
    return address


@click.command()
@click.argument("files", nargs=-1, required=True, type=parameters.PATH, metavar="FILE...")
@click.option(
    "-o",
    "--out",
    type=parameters.PATH,
    metavar="OUT",
    help="If FILE is a recording: write its Chrome trace to OUT (- for stdout), for "
    "ui.perfetto.dev, or its statistics as JSON if it contains no trace.",
)
@click.option(
    "--address",
    callback=_address,
    metavar="ADDRESS",
    help="Name the block of device memory at or near this address, such as 0x7f0012345000 from a "
    "driver's line about a memory fault: its size, where the program allocated it, when it was "
    "freed, and the launches that were given it. FILE comes from `mgpu-rt run --trace FILE`.",
)
@parameters.as_json
def stats(files: tuple[str, ...], out: str | None, address: int | None, as_json: bool) -> None:
    """Show statistics as tables, of one file after the other, or convert a recording.

    FILE comes from `mgpu-rt run --stats-json FILE`. FILE may also be a recording, which
    MGPU_RT_STATS=FILE and MGPU_RT_TRACE=FILE leave, even if the program was killed or still runs.
    "–" stands for a value that was not counted. If a memory fault ended a recorded process, lines
    explain the fault.
    """
    from mgpu_rt._cli.stats import tables
    from mgpu_rt._cli.stats.faults import explained
    from mgpu_rt._cli.stats.statistics import HOW_TO_GET_TRACE, convert, load, read

    file, *others = files
    if others and (out or address is not None or as_json):
        raise click.UsageError("-o, --address and --json take one file")
    if out:
        return convert(file, out)
    if address is not None:
        trace = load(file, HOW_TO_GET_TRACE)[-1]
        return click.echo("\n".join(explained(file, trace, address)))
    if as_json:
        return parameters.show_json(read(file).raw)
    shown = (tables.Side("this run", read(each), each) for each in files)
    blocks = (block for side in shown for block in (tables.lines([side]), side.run.fault) if block)
    click.echo("\n\n".join(map("\n".join, blocks)))
