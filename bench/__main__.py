"""`python -m bench`: measures figures as ratios within one run, and makes plots and tables of the
figures."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape

from bench import records
from bench.measure import Request, calls, in_python, models, programs
from bench.models.zoo import MODELS
from bench.setup import build, device, native, pack
from bench.setup import models as prepared
from bench.setup.device import Device
from bench.show import output, table
from bench.show.figures import Result
from mgpu_rt._cli.errors import NoDevice
from mgpu_rt._lowering import toolchain

#: Each benchmark, and the devices on which it runs. The benchmarks "threads" and "processes" do not
#: run on the emulated device, whose own threads would compete for the processors.
BENCHMARKS: dict[str, tuple[Callable[[Request], Result], tuple[str, ...]]] = {
    "calls": (calls.run, ("stub",)),
    "threads": (calls.run_threads, ("stub", "cuda", "hip")),
    "programs": (programs.run, device.NAMES),
    "processes": (programs.run_processes, ("cuda", "hip")),
    "models": (models.run, ("softgpu", "cuda", "hip")),
    "graphs": (models.run_graphs, device.NAMES),
    "in_python": (in_python.run, device.NAMES),
}


def _show_progress(prefix: str, text: str) -> None:
    print(f"{prefix}: {text}", flush=True)


def _devices(names: tuple[str, ...], console: Console) -> list[Device]:
    if names == ("auto",):
        found, reasons = device.find_all()
        for reason in reasons:
            console.print(f"left out: {escape(reason)}")
        return found
    try:
        return [device.find(name) for name in names]
    except (NoDevice, native.Failed) as reason:
        raise click.ClickException(str(reason)) from None


@click.group(invoke_without_command=True)
@click.option(
    "--device", "devices", multiple=True, default=("auto",), show_default=True,
    type=click.Choice(("auto", *device.NAMES)),
    help="What to run on; may be given several times. auto: all that is here.",
)  # fmt: skip
@click.option(
    "--only", multiple=True, type=click.Choice(list(BENCHMARKS)),
    help="Only this benchmark; may be given several times.",
)  # fmt: skip
@click.option(
    "--repetitions", type=click.IntRange(min=3),
    help="How often each is repeated, by default 20, on an emulated device 3; what is short, more "
    "often, and what starts processes, less.",
)  # fmt: skip
@click.option(
    "--threads", "thread_count", type=click.IntRange(1, 256),
    default=lambda: min(16, len(os.sched_getaffinity(0))), show_default="processors, at most 16",
    help="Threads that launch at once, at most.",
)  # fmt: skip
@click.option(
    "--llvm-runtime",
    type=click.Path(exists=True, dir_okay=False, resolve_path=True, path_type=Path),
    help="LLVM's own runtime library, as one more side: libmlir_rocm_runtime.so, on --device cuda "
    "libmlir_cuda_runtime.so.",
)  # fmt: skip
@click.option(
    "--model", "model_names", multiple=True,
    type=click.Choice([model.name for model in MODELS]),
    help="Measure this model only, in the benchmarks of models and graphs; may be given several "
    "times.",
)  # fmt: skip
@click.option(
    "--out", default=native.OUT, show_default=True, type=click.Path(path_type=Path),
    help="Directory for the results as JSON, or a file, to which results are added.",
)  # fmt: skip
@click.pass_context
def main(
    context: click.Context,
    devices: tuple[str, ...],
    only: tuple[str, ...],
    repetitions: int | None,
    thread_count: int,
    llvm_runtime: Path | None,
    model_names: tuple[str, ...],
    out: Path,
) -> None:
    """Measure everything that this machine can run, and compare the figures with the targets.

    A missed target is reported but is no failure; the exit code is 1 if a benchmark fails.
    """
    if context.invoked_subcommand:
        return
    console = Console(width=None if sys.stdout.isatty() else 120)
    found = _devices(devices, console)
    names = only or BENCHMARKS
    todo = [(name, on) for on in found for name in names if on.name in BENCHMARKS[name][1]]
    results: list[Result] = []
    written = output.path_in(out, found)
    load = os.getloadavg()[0]  # before the benchmarks load the machine themselves
    before = records.load(written) if written.exists() else None
    broken = False
    for number, (name, on) in enumerate(todo, 1):
        step = functools.partial(_show_progress, f"[{number}/{len(todo)}] {name} on {on.name}")
        count = repetitions or on.repetitions
        asked = Request(on, count, step, llvm_runtime, thread_count, model_names)
        try:
            results.append(BENCHMARKS[name][0](asked))
        except (native.Failed, toolchain.ToolchainMissing, toolchain.LoweringFailed) as error:
            title = f"[bold red]{name} on {on.name} could not be measured:[/]"
            console.print(f"{title} {escape(str(error))}")
            broken = True
            continue
        broken |= any("failed" in row for row in results[-1].data)
        output.show(results[-1], console)
        # Each time, because a machine may be lent for only minutes.
        output.write(results, found, written, load, before)
    output.show_summary(results, console)
    if results:
        console.print(f"written to {written}")
    sys.exit(1 if broken else 0)


@main.command()
@click.argument("results", type=click.Path(path_type=Path, exists=True))
def plot(results: Path) -> None:
    """Draw README's picture from RESULTS (JSON), as a PNG file in the same folder."""
    try:
        from bench.show.plot import draw
    except ImportError as error:
        raise click.ClickException(f"{error}: pip install '.[bench]'") from None
    print(draw(records.load(results), results) or "no graphs were measured on a device")


@main.command()
def tables() -> None:
    """Update the documents' tables from the results that the tables name."""
    for name in table.SHOWN_IN:
        path = native.ROOT / name
        path.write_text(table.refreshed(path.read_text(encoding="utf-8"), native.ROOT), "utf-8")


@main.command()
@click.option("--chip", default=device.CUDA_CHIP, show_default=True)
@click.option("--python", default="3.12", show_default=True, help="The release of Python there.")
def prepare(chip: str, python: str) -> None:
    """Pack the files for a GPU machine that has neither MLIR nor a network.

    On the GPU machine, unpack build/gpu/bench.tar.gz in a folder, and run `sh bench/run.sh` there.
    """
    native.need(native.RUNTIME, native.STOCK, native.BY_HAND, native.STUB)
    names = [program.name for program in programs.PROGRAMS]
    build.prepare(device.AMD_CHIP, names, device.ITERATIONS)  # for the stub
    build.prepare(chip, names, device.ITERATIONS)
    prepared.prepare(chip)
    archive = pack.write(python, (device.AMD_CHIP, chip))
    print(archive, archive.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
