"""Implements `mgpu-rt replay`, which repeats a recorded launch without its program.

The command replaces itself by a Python process in the device's environment. The new process
receives the options as JSON. Names of files and kernels are passed as data, never as program text.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from mgpu_rt._cli import parameters
from mgpu_rt._cli.errors import CommandError, tolerate_encodings

if TYPE_CHECKING:
    from mgpu_rt.runtime import Recording

#: The exceptions that mean that a launch cannot be repeated.
FAILURES = (ImportError, OSError, ValueError, IndexError, RuntimeError, MemoryError)

_MOST, _MOST_SHARED, _MOST_ERROR = (1 << 32) - 1, (1 << 31) - 1, float("inf")


def _sizes(_context: object, _option: object, text: str | None) -> tuple[int, ...] | None:
    """Parses 64, 16x16 or 4x4x4 as the sizes of a grid or block."""
    if text is None:
        return None
    words = text.lower().split("x")
    if not 1 <= len(words) <= 3 or not all(map(_is_size, words)):
        raise click.BadParameter(f"'{text}' is not one to three sizes, as 64 or 16x16")
    return tuple(map(int, words))


def _is_size(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) <= 10 and 0 < int(word) <= _MOST


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
@click.option(
    "--shared",
    type=click.IntRange(0, _MOST_SHARED),
    help="Another size of dynamic memory, in bytes.",
)
@click.option(
    "--iterations", type=click.IntRange(min=1), default=1, help="Repeat the launch this often."
)
@click.option(
    "--tolerance", type=float, help="Compare elements as numbers, and allow this absolute error."
)
@click.option(
    "--dtype",
    default="f32",
    show_default=True,
    help="The type of the elements in memory, for --tolerance.",
)
@click.option("--script", type=parameters.PATH, help="Write this replay as a Python script.")
def replay(
    device: str, recording: str, image: str | None, script: str | None, **options: Any
) -> None:
    """Repeat a recorded launch without its program, and compare the resulting memory with the
    recording.

    Exit status 0: the memory equals the recording; 1: the output lists differences; 2: the launch
    could not be repeated.
    """
    import json

    from mgpu_rt import _interpreter
    from mgpu_rt._cli import files, preload

    if options["tolerance"] is not None and not 0 <= options["tolerance"] < _MOST_ERROR:
        raise CommandError(f"--tolerance {options['tolerance']}: name a number from 0 up")
    if not os.path.isdir(recording):
        raise CommandError(
            f"'{recording}' is not a folder: name a folder that `mgpu-rt run --record` has written"
        )
    if image:
        files.read(image, "name a file that holds an image with the kernel")
        options["image"] = os.path.abspath(image)
    given = {name: value for name, value in options.items() if value is not None}
    given["recording"] = os.path.abspath(recording)
    if script:
        files.write(script, _script(given).encode())
    environment = preload.device_environment(preload.announced(device), os.environ)
    try:
        os.execve(sys.executable, _interpreter.text_command(_CHILD, json.dumps(given)), environment)
    except OSError as error:
        raise CommandError(f"{sys.executable} cannot be executed: {error.strerror}") from None


_CHILD = """
import json, signal
signal.signal(signal.SIGINT, signal.SIG_DFL)
from mgpu_rt._cli.replay import make
sys.exit(make(**json.loads(sys.argv[1])))
"""


def _script(given: dict[str, Any]) -> str:
    """Returns the replay as a Python script. Writes each value, even a hostile one, as an ASCII
    literal."""
    lines = "".join(f"        {name}={value!a},\n" for name, value in given.items())
    return f'''"""Makes a recorded launch again. It needs mgpu_rt, and HIP where the device is."""

import sys

from mgpu_rt._cli.replay import make

sys.exit(
    make(
{lines}    )
)
'''


def make(
    recording: str, *, launch: int | None = None, image: str | None = None, **options: Any
) -> int:
    """Repeats a launch in this process, and prints the result. Returns the command's exit status.

    `launch` counts from 1; `image` is the path of another image; `options` are the arguments of
    `Recording.replay`.
    """
    from mgpu_rt.runtime import Recording

    tolerate_encodings()
    try:
        opened = Recording(recording)
        announce(opened, launch)
        number = (launch or 1) - 1
        other = _image_in(image, opened.launches[number].kernel) if image else None
        replayed = opened.replay(number, image=other, **options)
    except FAILURES as error:
        complain(str(error) or "out of memory")
        return 2
    try:
        click.echo(str(replayed))
    except OSError as error:
        complain(f"stdout cannot be written: {error.strerror or error}")
        return 2
    return 0 if replayed.same else 1


def _image_in(path: str, kernel: str) -> bytes:
    """Reads a file, and returns the image that contains the kernel. Raises ValueError or
    OSError."""
    from mgpu_rt._launch.modules import choose

    return choose(path, kernel)[1].loaded


def announce(opened: Recording, launch: int | None) -> None:
    """Prints the number of the repeated launch, and the data that the recording lacks."""
    if launch is None and len(opened.launches) > 1:
        complain(f"launch 1 of {len(opened.launches)} in this recording; --launch chooses another")
    for words in opened.launches[: launch or 1][-1].not_recorded:
        complain(f"not recorded: {words}")


def complain(text: str) -> None:
    """Prints a line on stderr, with terminal control characters made visible."""
    from mgpu_rt._text import printable

    click.echo(f"mgpu-rt: {printable(text)}", err=True)
