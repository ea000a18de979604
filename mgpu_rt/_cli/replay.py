"""Implements `mgpu-rt replay`, which repeats a recorded launch without its program."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from mgpu_rt._cli import parameters
from mgpu_rt._cli.errors import CommandError

if TYPE_CHECKING:
    from mgpu_rt._recordings.launches import RecordedLaunch

#: The exceptions that mean that a launch cannot be repeated.
FAILURES = (
    *(ImportError, OSError, ValueError, TypeError, LookupError, ArithmeticError),
    *(RuntimeError, MemoryError),
)


def _sizes(_context: object, _option: object, text: str | None) -> tuple[int, ...] | None:
    """Parses 64, 16x16 or 4x4x4 as the sizes of a grid or block."""
    words = (text or "1").lower().split("x")
    if len(words) > 3 or not all(word.isascii() and word.isdigit() for word in words):
        raise click.BadParameter(f"'{text}' is not one to three sizes, as 64 or 16x16")
    return tuple(map(int, words)) if text is not None else None


@click.command()
@parameters.device("As for `mgpu-rt run`.")
@click.argument("recording", type=parameters.PATH)
@click.option(
    "--launch",
    type=click.IntRange(min=1),
    help="The number of the launch in the recording.  [default: the first]",
)
@click.option(
    "--image",
    type=parameters.PATH,
    help="Another image with the kernel: a code object, or a file that holds one, as `mgpu-rt "
    "lower` writes.",
)
@click.option("--grid", callback=_sizes, metavar="X[xY[xZ]]", help="Another grid.")
@click.option("--block", callback=_sizes, metavar="X[xY[xZ]]", help="Another block.")
@click.option("--shared", type=int, help="Another size of dynamic memory, in bytes.")
@click.option(
    "--iterations", type=click.IntRange(min=1), default=1, help="Repeat the launch this often."
)
@parameters.comparison
def replay(device: str, recording: str, image: str | None, **options: Any) -> None:
    """Repeat a recorded launch without its program, and compare the resulting memory with the
    recording.

    Exit status 0: the memory equals the recording; 1: the output lists differences; 2: the launch
    could not be repeated.
    """
    import signal

    from mgpu_rt._cli import files, preload

    if not os.path.isdir(recording):
        raise CommandError(
            f"'{recording}' is not a folder: name a folder that `mgpu-rt run --record` has written"
        )
    if image:
        files.read(image, "name a file that holds an image with the kernel")
    preload.enter(device)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a launch may take long
    sys.exit(make(recording, image=image, **options))


def make(
    recording: str,
    *,
    launch: int | None = None,
    image: str | None = None,
    **options: Any,
) -> int:
    """Repeats a launch in this process, and prints the result. Returns the command's exit status.

    `launch` counts from 1; `image` is the path of another image; `options` are the arguments of
    `Recording.replay`.
    """
    from mgpu_rt._text import note_on, say
    from mgpu_rt.runtime import Recording
    from mgpu_rt.runtime._hip import Hip

    try:
        opened = Recording(recording)
        if launch is None and len(opened.launches) > 1:
            many = len(opened.launches)
            say(f"mgpu-rt: launch 1 of {many} in this recording; --launch chooses another")
        number = (launch or 1) - 1
        other = _other_image(image, opened.launches[number]) if image else None
        replayed = opened.replay(number, image=other, **options)
    except FAILURES as error:
        say(f"mgpu-rt: {str(error) or 'out of memory'}")
        return 2
    try:
        click.echo(str(replayed))
    except OSError as error:
        say(f"mgpu-rt: stdout cannot be written: {error.strerror or error}")
        return 2
    note = note_on(Hip.of_process().device_name())
    if note and options.get("iterations", 1) > 1:
        say(f"mgpu-rt: {note}")
    return 0 if replayed.same else 1


def _other_image(path: str, launch: RecordedLaunch) -> bytes:
    """Returns the image in a file that has the launch's kernel, and the launch's gpu.module if
    several images have a kernel of that name. Raises ValueError or OSError."""
    from mgpu_rt._images.kernel_names import SEPARATOR, full_name
    from mgpu_rt._launch.modules import choose

    try:
        return choose(path, launch.kernel)[1].loaded
    except ValueError:
        if not launch.module:
            raise
    names = [full_name(module, launch.kernel) for module in launch.module.split(SEPARATOR)]
    first, *others = (choose(path, name)[1].loaded for name in names)
    if any(image != first for image in others):
        raise ValueError(
            f"'{path}' has different images for {', '.join(names)}, which were equal when the "
            "launch was recorded: name a file that holds one of them, as `mgpu-rt lower --emit "
            "image` writes"
        )
    return first
