"""The command `mgpu-rt hoist`."""

from __future__ import annotations

import click

from mgpu_rt._cli import parameters
from mgpu_rt._cli.errors import CommandError


@click.command()
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
    from mgpu_rt._cli import files
    from mgpu_rt._hoist import rewrite, tools
    from mgpu_rt._images.sharing import NotBuilt
    from mgpu_rt._lowering.toolchain import ToolchainMissing

    given = files.read(program, "name a program in the LLVM dialect, or - for stdin")
    try:
        hoisted = rewrite.hoist(given, tools.find(llvm))
    except tools.Refused as reason:
        raise CommandError(f"{'stdin' if program == '-' else program}: {reason}") from None
    except (ToolchainMissing, NotBuilt) as missing:
        raise CommandError(str(missing)) from None
    files.write(out, hoisted.program)
    for sentence in hoisted.said:
        click.echo(f"mgpu-rt: {sentence}", err=True)
