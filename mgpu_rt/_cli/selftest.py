"""Implements `mgpu-rt selftest`, which tests whether results on this GPU equal stock's, and
measures the gain."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from mgpu_rt._cli import parameters
from mgpu_rt._cli.errors import CommandError

if TYPE_CHECKING:
    from mgpu_rt._selftest.result import Result


@click.command()
@parameters.device("The GPU's maker, as for `mgpu-rt run`.")
@click.option(
    "--json", "file", type=parameters.PATH, metavar="FILE", help="Write the results to this file."
)
@click.option(
    "--harsh",
    is_flag=True,
    help="Also reset the device, which ends the work of other programs on it.",
)
@click.option(
    "--only", multiple=True, metavar="NAME",
    help=
        "Run only this check, such as programs-22 or calm-03; `time` runs only the timing. May "
        "be repeated."
    ,
)  # fmt: skip
def selftest(
    device: str,
    file: str | None,
    harsh: bool,
    only: tuple[str, ...],
) -> None:
    """Test mgpu_rt on this machine's GPU: do results equal stock's, and how much time is saved?

    The selftest runs programs that LLVM 22, 19 and 15 have lowered. The selftest also plays saved
    sequences of calls. The selftest compares the library's results with stock's behaviour.
    Afterwards the selftest times loops in three modes. FILE does not identify you or your machine,
    so you can send it to others. The selftest allocates at most 64 MB of the device's memory.

    HIP_VISIBLE_DEVICES (CUDA_VISIBLE_DEVICES) selects one of several GPUs.

    Exit status 0: all results are right; 1: some are wrong, as the lines report; 2: some checks
    could not be compared or timed. After Ctrl-C the status is 130.
    """
    from mgpu_rt._cli import files
    from mgpu_rt._cli.terminal import progress
    from mgpu_rt._selftest import run, summary

    try:
        if file:
            files.check_writable(file)
        asked = run.Request(device, harsh, only)
        result = run.run(asked, progress)
        progress("")
        for line in summary.lines(result, file or ""):
            click.echo(line)
        _write(result, file)
    except CommandError:
        progress("")
        raise
    except KeyboardInterrupt:
        progress("")
        click.echo("mgpu-rt: interrupted before anything was tested", err=True)
        raise
    sys.exit(run.status(asked, result))


def _write(result: Result, file: str | None) -> None:
    import json

    from mgpu_rt._cli import files

    if not file:
        return
    document = json.dumps(result.document(), indent=1) + "\n"
    try:
        files.write(file, document.encode())
    except CommandError:
        click.echo(document)  # so that the minutes are not lost
        raise
