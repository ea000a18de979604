"""Defines parameters that several commands share: a device, JSON output, hooks, and a program after
`--`.

Each start of mgpu-rt imports all commands. To keep the start fast, a command imports other modules
only when the command runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from mgpu_rt._cli.errors import CommandError

#: A file name, which a shell can complete. The code that opens the file reports errors.
PATH = click.Path(readable=False)


as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def _device(_context: object, _option: object, word: str) -> str:
    """Checks a kind of device, or the name of a device that softgpu emulates, such as gfx942."""
    from mgpu_rt._cli import preload

    if why := preload.not_a_device(word):
        raise click.BadParameter(why)
    return word


def device(help_text: str) -> Callable[[Any], Any]:
    """Returns the option; `help_text` describes how the command uses the device."""
    return click.option(
        "--device",
        callback=_device,
        metavar="DEVICE",
        default="auto",
        show_default=True,
        help=help_text,
    )


def together(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Returns a decorator that adds several options; help lists them in this order."""

    def added(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return added


#: The options by which a user promises that no other code sees a shortcut.
promises = together(
    click.option(
        "--exclusive",
        is_flag=True,
        help="You declare that nothing else in the process calls HIP. The library then makes "
        "fewer queries to HIP, and keeps registered memory registered (docs/rule.md).",
    ),
    click.option(
        "--lazy",
        is_flag=True,
        help="With --exclusive, postpone each wait whose result no host code can see. Host "
        "code must not read device memory through a pointer: only copies wait for kernels. No "
        "effect on the emulated GPU, nor if HIP reports that the host can read device memory (a "
        "large BAR, an APU). A program that measures times then measures only how long the "
        "submission of work takes.",
    ),
)


def promised(exclusive: bool, lazy: bool) -> dict[str, str]:
    """Returns the variables of the options of `promises`. Raises CommandError."""
    if lazy and not exclusive:
        raise CommandError(
            "--lazy needs --exclusive: another user of HIP could see that a wait was postponed"
        )
    words = {"MGPU_RT_EXCLUSIVE": "on"} if exclusive else {}
    return {**words, "MGPU_RT_SYNC": "lazy"} if lazy else words


#: The options for Python code that observes or handles the program's calls.
overrides = together(
    click.option(
        "--hook",
        "hooks",
        multiple=True,
        metavar="NAME[=VALUE]",
        help="Observe the calls with a hook in Python: trace, time, nan[=f32], "
        "or a hook or runtime of your own, as MODULE:CLASS. May be repeated; "
        "each calls the next.",
    ),
    click.option(
        "--kernel", metavar="PATTERN", help="For --hook and --record: only these kernels."
    ),
    click.option(
        "--nth",
        type=click.IntRange(min=0),
        help="For --hook and --record: only the n-th launch of each kernel; 0: all.",
    ),
)

#: The options that say how elements of memory are compared.
comparison = together(
    click.option("--tolerance", type=float, help="Allow this absolute error of an element."),
    click.option(
        "--ulps",
        type=click.IntRange(min=0),
        default=0,
        help="Allow floats to differ by this many steps (units in the last place).",
    ),
    click.option(
        "--dtype",
        help="The type of the elements in memory, as f32 or i64; --tolerance and --ulps "
        "require it.",
    ),
)

#: The options for a program in MLIR, which `source.command` takes.
lowering = together(
    click.option(
        "--llvm",
        type=int,
        metavar="22|19",
        help="If PROGRAM is a .mlir file: the LLVM release that lowers it.  [default: 22]",
    ),
    click.option(
        "--chip",
        help="If PROGRAM is a .mlir file: the GPU to compile for, as for `mgpu-rt lower`.  "
        "[default: the device's]",
    ),
    click.option(
        "--entry",
        metavar="FUNCTION",
        help="If PROGRAM is a .mlir file: the function that runs. Its i32 result is the exit "
        "status; another integer or a float is printed.  [default: main]",
    ),
)


def show_json(values: Any) -> None:
    import json

    click.echo(json.dumps(values, indent=2))


class Program(click.Command):
    """Takes every word after PROGRAM for the program's, even if it looks like an option. A program
    in MLIR has no arguments, so the words after it are the command's."""

    allow_interspersed_args = False

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        from mgpu_rt._cli import source

        rest = super().parse_args(ctx, [*args])
        if ctx.params["arguments"] and source.is_mlir(ctx.params["program"]):
            ctx.params.clear()
            ctx.allow_interspersed_args = True
            rest = super().parse_args(ctx, args)
        return rest


class FilesOrProgram(click.Command):
    """Parses all words after -- as a program with its arguments, since click does not report
    whether the command line contained a --."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        at = args.index("--") if "--" in args else len(args)
        ctx.meta["program"] = args[at + 1 :]
        return super().parse_args(ctx, args[:at])
