"""The command `mgpu-rt inspect`."""

from __future__ import annotations

import click

from mgpu_rt._cli import parameters
from mgpu_rt._cli.errors import CommandError


@click.command()
@click.argument("file", type=parameters.PATH)
@parameters.device(
    "Compare the images with this device, as for `mgpu-rt run`; auto starts no software GPU."
)
@click.option("--no-device", is_flag=True, help="Only read the file: no GPU is started.")
def inspect(file: str, device: str, no_device: bool) -> None:
    """Show the images of device code in a file.

    Inspect prints kernels with their arguments and registers, how the cache treats each image, and
    whether the image fits this machine's devices. FILE is a code object, an offload bundle, a
    fatbin, PTX, or an object file, shared library or program that contains such images.
    """
    from mgpu_rt._cli import files
    from mgpu_rt._cli.inspect import listing
    from mgpu_rt._cli.inspect.fit import compare
    from mgpu_rt._images import find, sharing
    from mgpu_rt._packages import need_readers

    try:
        need_readers()
        contents = find.contents(files.read(file, "name a file that holds images"), f"'{file}'")
        for image in contents.images:
            image.private = sharing.why_not_shared(image.loaded)
    except (ModuleNotFoundError, find.NothingFound, sharing.NotBuilt) as error:
        raise CommandError(str(error)) from None
    unasked, answers = "--no-device", [[] for _ in contents.images]
    if not no_device:
        try:
            unasked, answers = "", compare(contents.images, device)
        except CommandError as error:
            unasked = error.message
    click.echo("\n".join(listing.lines(file, contents, answers, unasked)))
