"""The command `mgpu-rt run`."""

from __future__ import annotations

import os
import shlex
from contextlib import suppress
from typing import Any, NoReturn

import click

from mgpu_rt._cli import parameters, source
from mgpu_rt._cli.errors import CommandError


@click.command(cls=parameters.Program)
@parameters.device(
    "hip: AMD's GPUs. softgpu: AMD's HIP on an emulated GPU, or its name: gfx906, gfx908, "
    "gfx90a, gfx942. cuda: NVIDIA's GPUs. auto: hip if MGPU_RT_HIP is set; otherwise the first of "
    "hip, cuda and softgpu that this machine has, and a line says which."
)
@click.option(
    "--stats",
    is_flag=True,
    help="Print a table of calls and times on stderr at exit; a program that is killed prints "
    "none: then use --stats-json.",
)
@click.option(
    "--stats-json",
    type=parameters.PATH,
    metavar="PATH",
    help="Write the statistics to this file, as JSON, when the program has ended, also if it was "
    "killed. %p becomes the process id, and %r MPI's rank. Without %p and %r, ranks and child "
    "processes get files of their own: s.json, s.rank3.json, s.12345.json.",
)
@click.option(
    "--trace",
    type=parameters.PATH,
    metavar="PATH",
    help="Write the time of each call to this file, as a Chrome trace for ui.perfetto.dev (%p and "
    "%r as above), when the program has ended.",
)
@parameters.promises
@click.option(
    "--fail-on-error",
    is_flag=True,
    help="End with status 1 if one of the library's calls failed, in the program or in a process "
    "that it has started, and the program's own status is 0. A lost recording also gives status 1. "
    "A child of fork is not seen if its parent has started HIP.",
)
@click.option(
    "--record",
    type=parameters.PATH,
    metavar="FOLDER",
    help="Record the first launch of each kernel in this folder (FOLDER-2 if it holds something), "
    "with the memory that the launch read and wrote. --kernel and --nth choose other launches; "
    "--nth 0 chooses all launches. `mgpu-rt replay FOLDER` repeats a recorded launch. Ends with "
    "status 1 if no launch was recorded, and the program's own status is 0.",
)
@parameters.overrides
@parameters.lowering
@click.argument("program", type=parameters.PATH)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def run(
    device: str,
    stats: bool,
    stats_json: str | None,
    trace: str | None,
    exclusive: bool,
    lazy: bool,
    fail_on_error: bool,
    record: str | None,
    hooks: tuple[str, ...],
    kernel: str | None,
    nth: int | None,
    program: str,
    arguments: tuple[str, ...],
    **wanted: Any,
) -> None:
    """Run PROGRAM with mgpu_rt preloaded. A .mlir file is lowered for the device first.

    The command returns the program's exit status, and signals reach the program. The program
    replaces this command's process; with --stats, --stats-json, --trace, --record and
    --fail-on-error this command waits for the program instead. The program's child processes have
    mgpu_rt preloaded too. Status 2: the command could not prepare the run; the message gives the
    reason. Status 127 and 126, as from a shell: PROGRAM is missing, or cannot be executed.
    """
    from mgpu_rt._cli import executable, files, overrides, preload, recording

    promised = parameters.promised(exclusive, lazy)
    if stats or stats_json or trace or fail_on_error:
        recording.must_have_no_file(os.environ)
    if stats_json and stats_json == trace:
        raise CommandError(f"--stats-json and --trace write one file, '{trace}': name two")
    for output in (stats_json, trace):
        if output is not None:
            files.check_writable(output)
    device = preload.announced(device)
    program = source.command([program, *arguments], device, **wanted)[0]
    environment = preload.environment(device) | promised
    if stats:
        environment["MGPU_RT_STATS"] = "1"
    if record:
        executable.check(program, as_shell=True)
        record = files.claim(folder := record)
        if record != folder:
            click.echo(f"mgpu-rt: '{folder}' exists, so '{record}' gets the recording", err=True)
        setting = shlex.quote(f"output={os.path.abspath(record)}")  # the program may change folder
        hooks, nth = (*hooks, f"mgpu_rt.runtime:Record?{setting}"), 1 if nth is None else nth
    environment |= overrides.environment(hooks, kernel, nth)
    reason = executable.obstacle(executable.find(program))
    if reason and fail_on_error:
        raise CommandError(
            f"mgpu_rt detects failures, but cannot be preloaded into '{program}': {reason}"
        )
    if reason:
        click.echo(f"mgpu-rt: '{program}' runs without mgpu_rt preloaded: {reason}", err=True)
    if misplaced := [word for word in arguments if word.partition("=")[0] in _OPTIONS]:
        click.echo(
            f"mgpu-rt: {misplaced[0]} after '{program}' is an argument of the "
            "program: mgpu-rt's options stand before it",
            err=True,
        )
    if stats or stats_json or trace or fail_on_error:
        outputs = (stats_json or "", trace or "")
        _record(*outputs, fail_on_error, record, program, list(arguments), environment)
    if record:
        _, status = executable.execute_and_wait(program, list(arguments), environment)
        _end(status, _unrecorded(record))
    executable.execute(program, list(arguments), environment)


#: Options of `mgpu-rt run` that no program is likely to have.
_OPTIONS = ("--stats", "--stats-json", "--trace", "--exclusive", "--fail-on-error")


def _record(
    stats_json: str,
    trace: str,
    fail_on_error: bool,
    launches: str | None,
    program: str,
    arguments: list[str],
    environment: dict[str, str],
) -> NoReturn:
    """Runs the program, writes the outputs, and ends as the program has ended. With
    `fail_on_error`, ends with status 1 in place of 0 if a call failed or a recording is lost.
    `launches` is the folder of recorded launches, if they are wanted."""
    from mgpu_rt._cli import executable, recording

    with recording.folder_beside(stats_json or trace) as folder:
        name = os.path.join(folder, "%p")
        table = environment.get("MGPU_RT_STATS", "").partition(",")[0] in ("1", "on")
        markers = environment.get("MGPU_RT_TRACE", "").partition(",")[0] == "markers"
        if trace:
            environment["MGPU_RT_TRACE"] = f"markers,{name}" if markers else name
        else:
            environment["MGPU_RT_STATS"] = f"1,{name}" if table else name
        child, status = executable.execute_and_wait(program, arguments, environment)
        if not any(folder.iterdir()):  # no call, or the library could not make even a file
            why = source.no_call(program)
            click.echo(f"mgpu-rt: unless a line above says why, {why}", err=True)
        failed = recording.convert(folder, stats_json, trace, child, notes=table)
    if why := executable.reason_in_images(program, os.waitstatus_to_exitcode(status)):
        click.echo(f"mgpu-rt: '{source.named(program)}' was ended by a signal{why}", err=True)
    why = failed if fail_on_error else ""
    _end(status, why or (_unrecorded(launches) if launches else ""))


def _unrecorded(folder: str) -> str:
    """Returns a reason to fail if a folder of recorded launches holds none, and removes it."""
    with suppress(OSError):
        if any(not name.startswith(".") for name in os.listdir(folder)):
            return ""
    with suppress(OSError):
        os.rmdir(folder)
    return "no launch was recorded"


def _end(status: int, reason: str) -> NoReturn:
    """Ends as the program has ended, but with status 1 in place of 0 if there is a reason."""
    from mgpu_rt._cli import child

    if reason and status == 0:
        click.echo(f"mgpu-rt: {reason}, so the exit status is 1 in place of 0", err=True)
        raise SystemExit(1)
    child.end_as(status)
