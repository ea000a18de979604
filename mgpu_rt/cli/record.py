"""mgpu-rt record, and mgpu-rt replay: one launch of a program, kept and made again by itself."""

from __future__ import annotations

import os
import shlex
import sys

import click

from mgpu_rt.cli import parameters
from mgpu_rt.cli.errors import CommandError

_DEVICE = "As for `mgpu-rt run`."


@click.command(context_settings={"allow_interspersed_args": False})
@parameters.device(_DEVICE)
@click.option("--kernel", metavar="PATTERN", default="*", help="The kernels, by default all.")
@click.option(
    "--nth",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="Which launch of each kernel; 0: all.",
)
@click.option(
    "-o",
    "--out",
    type=parameters.PATH,
    default="recording",
    show_default=True,
    metavar="FOLDER",
    help="A folder that is not there yet.",
)
@click.argument("program", type=parameters.PATH)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def record(
    device: str, kernel: str, nth: int, out: str, program: str, arguments: tuple[str, ...]
) -> None:
    """Run PROGRAM and keep launches of its kernels, with the memory that they read and wrote.

    The exit status is the program's. `mgpu-rt replay FOLDER` makes a launch again.
    """
    from mgpu_rt.cli import executable, interception, preload

    if os.path.exists(out):
        raise CommandError(f"'{out}' is there already: name another folder")
    environment = preload.environment(preload.announced(device))
    hook = f"record={os.path.abspath(out)}"
    environment |= interception.environment(None, (hook,), kernel, nth)
    executable.execute(program, list(arguments), environment)


def _sizes(_context: object, _option: object, text: str | None) -> tuple[int, ...] | None:
    """64 or 16x16 or 4x4x4, as a grid or a block."""
    if text is None:
        return None
    sizes = text.lower().split("x")
    if not 1 <= len(sizes) <= 3 or not all(size.isdigit() and int(size) for size in sizes):
        raise click.BadParameter(f"'{text}' is not one to three sizes, as 64 or 16x16")
    return tuple(map(int, sizes))


@click.command()
@parameters.device(_DEVICE)
@click.argument("recording", type=parameters.PATH)
@click.option(
    "--launch", type=click.IntRange(min=1), help="Which of the recording's.  [default: the first]"
)
@click.option("--image", type=parameters.PATH, help="Another image with the kernel, in a file.")
@click.option("--grid", callback=_sizes, metavar="X[xY[xZ]]", help="Another grid.")
@click.option("--block", callback=_sizes, metavar="X[xY[xZ]]", help="Another block.")
@click.option("--shared", type=click.IntRange(min=0), help="Other bytes of dynamic memory.")
@click.option("--iterations", type=click.IntRange(min=1), default=1, help="How often.")
@click.option("--tolerance", type=float, help="Compare numbers, and allow this absolute error.")
@click.option(
    "--dtype", default="f32", show_default=True, help="The elements of blocks, for --tolerance."
)
@click.option("--script", type=parameters.PATH, help="Write this replay as a script of Python's.")
def replay(
    device: str,
    recording: str,
    launch: int | None,
    image: str | None,
    grid: tuple[int, ...] | None,
    block: tuple[int, ...] | None,
    shared: int | None,
    iterations: int,
    tolerance: float | None,
    dtype: str,
    script: str | None,
) -> None:
    """Make a recorded launch again, by itself, and say whether it leaves the same.

    Exit status 0: the same; 1: something differs, and the lines say what and where; 2: it could not
    be made.
    """
    from mgpu_rt import interpreter
    from mgpu_rt.cli import files, preload

    try:
        if not os.path.isdir(recording):
            raise CommandError(
                f"'{recording}' is no folder: name what `mgpu-rt record` has written"
            )
        if image:
            files.read(image, "name a file that holds an image with the kernel")
        given = {
            "image": os.path.abspath(image) if image else None,
            "grid": grid,
            "block": block,
            "shared": shared,
            "iterations": iterations,
            "tolerance": tolerance,
            "dtype": dtype,
        }
        text = _script(os.path.abspath(recording), launch, given)
        if script:
            files.check_writable(script)
            files.write(script, text.encode(errors="surrogateescape"))
        environment = preload.device_environment(preload.announced(device), os.environ)
        os.execve(sys.executable, interpreter.text_command(text), environment)
    except OSError as error:
        raise CommandError(str(error)) from None


#: The script prints this of a recording of several launches, if nobody chose one.
_SEVERAL = """
    if len(recording.launches) > 1:
        several = f"launch 1 of {len(recording.launches)} in this recording; --launch chooses"
        print(f"mgpu-rt: {several}", file=sys.stderr)"""


def _script(recording: str, launch: int | None, given: dict[str, object]) -> str:
    """The replay as a script: it needs mgpu_rt, and HIP where the device is."""
    image = f"Path({given.pop('image')!r}).read_bytes()" if given["image"] else None
    given.pop("image", None)
    arguments = [
        f"        {name}={value!r},\n" for name, value in given.items() if value is not None
    ]
    if image:
        arguments.insert(0, f"        image={image},\n")
    return f'''"""Makes a recorded launch again: {shlex.quote(recording)}."""

import sys
from pathlib import Path

from mgpu_rt.runtime.replay import Recording

try:
    recording = Recording({recording!r}){_SEVERAL if launch is None else ""}
    replayed = recording.replay(
        {(launch or 1) - 1},
{"".join(arguments)}    )
except (ImportError, OSError, ValueError, IndexError, RuntimeError) as error:
    print(f"mgpu-rt: {{error}}", file=sys.stderr)
    sys.exit(2)
print(replayed)
sys.exit(0 if replayed.same else 1)
'''
