"""The command `mgpu-rt config`."""

from __future__ import annotations

import os
import shlex

import click


@click.command()
@click.option(
    "--libs", is_flag=True, help="Print the linker's flags, including the flag for the run path."
)
@click.option("--cflags", is_flag=True, help="Print the compiler's flags, for mgpu_rt.h.")
@click.option("--cmakedir", is_flag=True, help="Print the folder for CMake's mgpu_rt_DIR.")
@click.option("--path", is_flag=True, help="Print the library's folder, for LD_PRELOAD and -L.")
def config(libs: bool, cflags: bool, cmakedir: bool, path: bool) -> None:
    """Show every option, or how to build with the library."""
    asked = (libs, cflags, cmakedir)
    wanted = [flags for flags, wish in zip(_building(), asked, strict=True) if wish]
    if path:
        from mgpu_rt._cli import preload

        click.echo(os.path.dirname(preload.runtime()))
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


def _unusable() -> list[str]:
    """Returns a sentence about each value that names no device, no HIP library, or no class."""
    from mgpu_rt import _loading
    from mgpu_rt._cli import preload, softgpu

    sentences = [*softgpu.unusable(os.environ), *filter(None, [preload.not_hip(os.environ)])]
    for variable in ("MGPU_RT_RUNTIME", "MGPU_RT_POLICY"):
        named = os.environ.get(variable, "")
        try:
            for name in named.partition("?")[0].split(",") if named else ():
                _loading.parts(name.strip())
        except _loading.NotFound as error:
            sentences.append(f"{variable}={named}: {error}")
    return sentences


def _show_options() -> None:
    from mgpu_rt._cli import options
    from mgpu_rt._text import indented

    for option in options.options():
        click.secho(f"{option.variable}={option.value()}", bold=option.is_set(), nl=False)
        click.echo("  (from the environment)" if option.is_set() else "")
        click.echo(indented(option.meaning))
    for sentence in [*options.misspelt(), *options.senseless(), *_unusable()]:
        click.echo(f"mgpu-rt: {sentence}", err=True)
