"""The command `mgpu-rt check`."""

from __future__ import annotations

from typing import Any

import click

from mgpu_rt._cli import parameters, source
from mgpu_rt._cli.errors import CommandError


@click.command(cls=parameters.Program)
@parameters.device(
    "The emulated device: softgpu or auto, or its name, such as gfx942. On a GPU (hip, cuda), "
    "check examines only calls."
)
@click.option(
    "--json", "json_file", type=parameters.PATH, metavar="FILE", help="Write the reports as JSON."
)
@parameters.lowering
@click.argument("program", type=parameters.PATH)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def check(
    device: str,
    json_file: str | None,
    program: str,
    arguments: tuple[str, ...],
    **wanted: Any,
) -> None:
    """Run PROGRAM on the emulated device and report wrong accesses and races. Experimental.

    A .mlir file is lowered with line tables first, so that faults name its lines.

    `mgpu-rt check -- mgpu-rt replay RECORDING` checks a launch of `mgpu-rt run --record`.

    With --device hip or cuda, check examines only the program's calls: streams, events, waits and
    copies.

    Check reports each fault once, on stderr, at the end of the program. The emulated device skips a
    wrong access, and the program continues. Exit status 1: check found a fault, or a call failed
    and the program ended with 0. Exit status 2: check could not run, and a line gives the reason.
    Otherwise the exit status is the program's.
    """
    import tempfile
    from pathlib import Path

    from mgpu_rt._cli import child, executable, files, terminal
    from mgpu_rt._cli.check import orders, reports, runs

    on = "softgpu" if device == "auto" else device
    if json_file:
        files.check_writable(json_file)
        files.remove_earlier(json_file)
    program = source.command([program, *arguments], on, **wanted, lines=True)[0]
    executable.check(program)
    with tempfile.TemporaryDirectory(prefix="mgpu-rt-check-") as folder:
        output = Path(folder, "reports")
        environment = runs.environment(device, output)
        with terminal.told_if_long(f"'{source.named(program)}' still runs: {runs.slow(on)}"):
            over = child.run([program, *arguments], environment, outlives_term=True)
        status = over.status or 0
        begun, ended, failed, found = reports.read(output)
    end = child.signal_name(status)
    if not begun:
        runs.end_if_signalled(over)
        how = f"{end} ended it{executable.reason_in_images(program, status)}; " if end else ""
        raise CommandError(f"nothing was checked: {how}{source.no_call(program)}")
    early = "" if ended else "a signal or _exit"
    for report in found:
        terminal.message(reports.text(report))
    last = reports.summary(found, failed, end or early)
    why = executable.reason_in_images(program, status)
    click.echo(f"mgpu-rt: {last}; {runs.unexamined(on)}{why}", err=True)
    if json_file:
        files.write(json_file, reports.as_json(found, failed).encode())
    runs.end_if_signalled(over)
    faulty = not all(map(orders.is_warning, found))
    raise SystemExit(1 if faulty else runs.exit_status(status, failed))
