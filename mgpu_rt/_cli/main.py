"""Defines the command mgpu-rt."""

from __future__ import annotations

import errno
import os
import shlex
import sys
from typing import Any, NoReturn

try:
    import click
except ImportError:
    from mgpu_rt._packages import how_to_add

    sys.exit(f"mgpu-rt: {sys.executable} has no click: {how_to_add('click', 'python3-click')}")

import mgpu_rt
from mgpu_rt._cli import earlier, parameters
from mgpu_rt._cli.check.command import check
from mgpu_rt._cli.diff.command import diff
from mgpu_rt._cli.errors import CommandError, tolerate_encodings
from mgpu_rt._cli.inspect.command import inspect
from mgpu_rt._cli.lower import lower
from mgpu_rt._cli.replay import replay
from mgpu_rt._cli.selftest import selftest
from mgpu_rt._cli.stats.command import compare, stats


class Commands(click.Group):
    """Reports errors of stdout, such as a full disk, and a failure to start a process."""

    def main(self, *arguments: Any, **settings: Any) -> Any:
        tolerate_encodings()
        return super().main(*arguments, **settings)

    def invoke(self, ctx: click.Context) -> object:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except OSError as error:
            if error.filename is not None or error.errno not in _FULL:
                from mgpu_rt import _hip_search

                if isinstance(error, _hip_search.NoProcess):
                    raise CommandError(str(error)) from None
                raise
            from mgpu_rt._cli import files

            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # for text that is still to be flushed
            raise files.unwritable("stdout", error) from None
        return result


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(mgpu_rt.__version__, prog_name="mgpu-rt")
def main() -> None:
    """Run, measure, check and compile MLIR's programs for GPUs.

    The programs run with a libmlir_rocm_runtime.so that caches modules, functions, streams, events
    and memory.
    """


for command in (
    lower,
    inspect,
    stats,
    compare,
    replay,
    diff,
    check,
    selftest,
    *earlier.COMMANDS,
):
    main.add_command(command)


# Everything after PROGRAM belongs to the program, even if it looks like an option.
@main.command(context_settings={"allow_interspersed_args": False})
@parameters.device(
    "hip: AMD's GPUs. softgpu: AMD's HIP on an emulated GPU, or its name: gfx906, gfx908, "
    "gfx90a, gfx942. cuda: NVIDIA's GPUs. auto: the first of hip, cuda and softgpu that this "
    "machine has; a line says which."
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
@click.option(
    "--exclusive",
    is_flag=True,
    help="You declare that nothing else in the process calls HIP. The library then makes fewer "
    "queries to HIP, and keeps registered memory registered (docs/rule.md).",
)
@click.option(
    "--lazy",
    is_flag=True,
    help="With --exclusive, postpone each wait whose result no host code can see. Host code must "
    "not read device memory through a pointer: only copies wait for kernels. No effect if HIP "
    "reports that the host can read device memory (a large BAR, an APU). A program that measures "
    "times then measures only how long the submission of work takes.",
)
@click.option(
    "--fail-on-error",
    is_flag=True,
    help="End with status 1 if one of the library's calls failed and the program's own status is "
    "0. A program that ends by _exit keeps its own status.",
)
@click.option(
    "--record",
    type=parameters.PATH,
    metavar="FOLDER",
    help="Record the first launch of each kernel in this folder, with the memory that the launch "
    "read and wrote. --kernel and --nth choose other launches; --nth 0 chooses all "
    "launches. `mgpu-rt replay FOLDER` repeats a recorded launch.",
)
@parameters.overrides
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
    runtime: str | None,
    hooks: tuple[str, ...],
    kernel: str | None,
    nth: int | None,
    program: str,
    arguments: tuple[str, ...],
) -> None:
    """Run PROGRAM with mgpu_rt preloaded.

    The command returns the program's exit status, and signals reach the program. The program
    replaces this command's process; with --stats-json and --trace this command waits for the
    program instead. The program's child processes have mgpu_rt preloaded too. Status 2:
    the command could not prepare the run; the message gives the reason. Status 127 and 126, as from
    a shell: PROGRAM is missing, or cannot be executed.
    """
    from mgpu_rt._cli import executable, files, options, overrides, preload

    for sentence in options.misspelt():
        click.echo(f"mgpu-rt: {sentence}", err=True)
    if lazy and not exclusive:
        raise CommandError(
            "--lazy needs --exclusive: another user of HIP could see that a wait was postponed"
        )
    for output in (stats_json, trace):
        if output is not None:
            files.check_writable(output)
    environment = preload.environment(preload.announced(device))
    if stats:
        environment["MGPU_RT_STATS"] = "1"
    if exclusive:
        environment["MGPU_RT_EXCLUSIVE"] = "on"
    if lazy:
        environment["MGPU_RT_SYNC"] = "lazy"
    if fail_on_error:
        environment["MGPU_RT_ERRORS"] = "fail"
    if record:
        from mgpu_rt._cli.record import claim

        claim(record, program)
        hooks, nth = (*hooks, f"record={record}"), 1 if nth is None else nth
    environment |= overrides.environment(runtime, hooks, kernel, nth)
    reason = executable.obstacle(executable.find(program))
    if reason and fail_on_error:
        raise CommandError(
            f"mgpu_rt detects failures, but cannot be preloaded into '{program}': {reason}"
        )
    if reason:
        click.echo(f"mgpu-rt: '{program}' runs without mgpu_rt: {reason}", err=True)
    if stats_json or trace:
        _record(stats_json or "", trace or "", program, list(arguments), environment)
    if stats or fail_on_error or runtime or hooks:
        environment |= preload.shown_of_this_process()
    executable.execute(program, list(arguments), environment)


def _record(
    stats_json: str, trace: str, program: str, arguments: list[str], environment: dict[str, str]
) -> NoReturn:
    """Runs the program, writes the outputs, and ends as the program has ended."""
    from mgpu_rt._cli import executable, preload, recording

    with recording.folder_beside(stats_json or trace) as folder:
        name = os.path.join(folder, "%p")
        if trace:
            environment["MGPU_RT_TRACE"] = name
        else:
            table = environment.get("MGPU_RT_STATS") == "1"
            environment["MGPU_RT_STATS"] = f"1,{name}" if table else name
        child, status = executable.execute_and_wait(
            program, arguments, environment, preload.shown_of_this_process
        )
        recording.convert(folder, recording.Outputs(stats_json, trace), child)
    executable.end_as(status)


@main.command()
@click.option(
    "--libs", is_flag=True, help="Print the linker's flags, including the flag for the run path."
)
@click.option("--cflags", is_flag=True, help="Print the compiler's flags, for mgpu_rt.h.")
@click.option("--cmakedir", is_flag=True, help="Print the folder for CMake's mgpu_rt_DIR.")
@click.option("--path", is_flag=True, help="Print the library's folder, for LD_PRELOAD and -L.")
@click.option(
    "--abi",
    is_flag=True,
    help="Show each function that programs call, and the part of mgpu_rt that serves the function.",
)
@click.option(
    "--env",
    is_flag=True,
    help="Print shell commands, after which the shell runs programs as `mgpu-rt run --device "
    "DEVICE` does: "
    'eval "$(mgpu-rt config --env --device softgpu)".',
)
@parameters.device("The device of --env.")
@click.option("--json", "as_json", is_flag=True, help="Print paths, version and options as JSON.")
def config(
    libs: bool,
    cflags: bool,
    cmakedir: bool,
    path: bool,
    abi: bool,
    env: bool,
    device: str,
    as_json: bool,
) -> None:
    """Show every option, how to build with the library, or the functions that the library
    implements."""
    if device != "auto" and not env:
        raise CommandError(f"--device {device} needs --env: add --env")
    asked = (libs, cflags, cmakedir)
    wanted = [flags for flags, wish in zip(_building(), asked, strict=True) if wish]
    if as_json:
        _show_json()
    elif path:
        click.echo(_folder())
    elif abi:
        _show_abi()
    elif env:
        _show_env(device)
    elif wanted:
        click.echo(" ".join(wanted))
    else:
        _show_options()


def _building() -> tuple[str, str, str]:
    """Returns the output of --libs, --cflags and --cmakedir, quoted for a shell."""
    from mgpu_rt import _layout

    lib = shlex.quote(str(_layout.PREFIX / "lib"))
    rpath = shlex.quote(f"-Wl,-rpath,{_layout.PREFIX / 'lib'}")
    return (
        f"-L{lib} {rpath} -lmlir_rocm_runtime",
        f"-I{shlex.quote(str(_layout.PREFIX / 'include'))}",
        str(_layout.PREFIX / "lib" / "cmake" / "mgpu_rt"),
    )


def _show_json() -> None:
    from mgpu_rt import _layout
    from mgpu_rt._cli import options

    libs, cflags, cmakedir = _building()
    values = {
        "version": mgpu_rt.__version__,
        "library": str(_layout.PREFIX / "lib" / _layout.LIBRARY),
        "libs": shlex.split(libs),
        "cflags": shlex.split(cflags),
        "cmakedir": cmakedir,
        "options": {option.variable: option.value() for option in options.options()},
    }
    parameters.show_json(values)


def _folder() -> str:
    try:
        return os.path.dirname(mgpu_rt.library_path())
    except FileNotFoundError as error:
        raise CommandError(str(error)) from None


def _show_env(device: str) -> None:
    """Prints the differences between this environment and a program's environment on the device."""
    from mgpu_rt._cli import preload

    wanted = preload.environment(preload.announced(device))
    lines = [f"unset {name}" for name in os.environ if name not in wanted]
    for name, value in wanted.items():
        if os.environ.get(name) != value:
            lines.append(f"export {name}={shlex.quote(value)}")
    click.echo(os.fsencode("".join(f"{line}\n" for line in lines)), nl=False)


def _show_abi() -> None:
    from mgpu_rt._abi import left_out, markdown

    click.echo(markdown() + "\n" + left_out(), nl=False)


def _show_options() -> None:
    from mgpu_rt._cli import options
    from mgpu_rt._text import indented

    for option in options.options():
        click.secho(f"{option.variable}={option.value()}", bold=option.is_set(), nl=False)
        click.echo("  (from the environment)" if option.is_set() else "")
        click.echo(indented(option.meaning))
    for sentence in options.misspelt():
        click.echo(f"mgpu-rt: {sentence}", err=True)


@main.command()
@parameters.device("As for `mgpu-rt run`.")
@parameters.as_json
@click.option(
    "--install",
    "version",
    metavar="VERSION",
    help="Fetch HIP of VERSION (5.7, 6.4 or 7.2) into your folder first, from Debian's packages "
    "(60 MB); root is not needed. --device softgpu uses this HIP for devices that the "
    "machine's own HIP does not know; set MGPU_RT_HIP to this HIP for all devices. Then doctor "
    "makes no trial run.",
)
def doctor(device: str, as_json: bool, version: str | None) -> None:
    """Make a trial run and print what a real run would do.

    Exit status 0: a run is possible; 1: a run would fail, and the lines of failed checks give the
    reason.
    """
    if version is not None:
        from mgpu_rt._cli.install import install

        return install(version)
    from mgpu_rt._cli.doctor import examine

    found = examine(device)
    if as_json:
        parameters.show_json(found.as_dict())
    else:
        found.show()
    sys.exit(0 if found.possible else 1)


@main.command()
@click.argument("program", type=parameters.PATH, metavar="IN")
@click.option(
    "-o",
    "--out",
    type=parameters.PATH,
    default="-",
    metavar="OUT",
    help="The file to write, by default stdout.",
)
@click.option(
    "--llvm",
    type=click.IntRange(min=19),
    help="The LLVM release that made IN and reads OUT. [default: the release of mlir-opt on "
    "PATH, or the newest installed release]",
)
def hoist(program: str, out: str, llvm: int | None) -> None:
    """Rewrite IN so that launches share modules, functions and streams, even without mgpu_rt.

    IN is a program in the LLVM dialect; - means stdin. On stderr hoist lists the moved operations.
    The list also names each unmoved operation, with the reason. If hoist moves no operation, OUT
    equals IN.
    """
    from mgpu_rt._cli.hoist import write

    for sentence in write(program, out, llvm):
        click.echo(f"mgpu-rt: {sentence}", err=True)
