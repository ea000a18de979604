"""Defines the command mgpu-rt."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

try:
    import click
except ImportError:
    from mgpu_rt._packages import how_to_add

    sys.exit(f"mgpu-rt: {sys.executable} has no click: {how_to_add('click')}")

import mgpu_rt
from mgpu_rt._cli import parameters
from mgpu_rt._cli.check.command import check
from mgpu_rt._cli.compare import compare
from mgpu_rt._cli.config import config
from mgpu_rt._cli.diff.command import diff
from mgpu_rt._cli.errors import CommandError, open_missing_streams, tolerate_encodings
from mgpu_rt._cli.hoist import hoist
from mgpu_rt._cli.inspect.command import inspect
from mgpu_rt._cli.lower import lower
from mgpu_rt._cli.replay import replay
from mgpu_rt._cli.run import run
from mgpu_rt._cli.selftest import selftest
from mgpu_rt._cli.stats.command import stats


class Commands(click.Group):
    """Reports errors of the system in one line. Ends a command after Ctrl-C with the status that a
    shell gives it."""

    def main(self, *arguments: Any, **settings: Any) -> Any:
        open_missing_streams()
        tolerate_encodings()
        return super().main(*arguments, **settings)

    def make_context(self, *arguments: Any, **settings: Any) -> click.Context:
        with _explained():  # this prints --help and --version
            return super().make_context(*arguments, **settings)

    def invoke(self, ctx: click.Context) -> object:
        with _explained():
            result = super().invoke(ctx)
            sys.stdout.flush()
        return result


@contextmanager
def _explained() -> Iterator[None]:
    """Turns Ctrl-C and the system's errors into the end of a command. Raises CommandError."""
    try:
        yield
    except KeyboardInterrupt:
        raise SystemExit(130) from None  # 128 + SIGINT
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise  # click ends the command
        named = f"'{error.filename}': "
        if error.filename is None and error.errno == errno.ENOENT:
            is_here = error.strerror == os.strerror(errno.ENOENT)  # Python's own text names it
            named = "the current folder: " if is_here else ""
        elif error.filename is None:  # of stdout, whose text is still to be flushed
            named = "stdout: "
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise CommandError(f"{named}{error.strerror or error}") from None


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(mgpu_rt.__version__, prog_name="mgpu-rt")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Run, measure, check and compile MLIR's programs for GPUs.

    The programs run with a libmlir_rocm_runtime.so that caches modules, functions, streams and
    memory.
    """
    is_set = any(name.startswith("MGPU_RT_") for name in os.environ)
    if ctx.invoked_subcommand in ("run", "check", "compare", "diff") and is_set:
        from mgpu_rt._cli import options  # takes time

        for sentence in options.misspelt():
            click.echo(f"mgpu-rt: {sentence}", err=True)


for command in (
    run,
    config,
    lower,
    inspect,
    stats,
    compare,
    replay,
    diff,
    check,
    selftest,
    hoist,
):
    main.add_command(command)


@main.command()
@parameters.device("As for `mgpu-rt run`.")
@parameters.as_json
def doctor(device: str, as_json: bool) -> None:
    """Make a trial run and print what a real run would do.

    Exit status 0: a run is possible; 1: a run would fail, and the lines of failed checks give the
    reason.
    """
    from mgpu_rt._cli.doctor import examine

    found = examine(device)
    if as_json:
        parameters.show_json(found.as_dict())
    else:
        found.show()
    sys.exit(0 if found.possible else 1)
