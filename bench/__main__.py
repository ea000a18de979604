"""`python -m bench`: the figures, as ratios in one run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import click
from rich.console import Console

from bench import calls, forum, lower, native, report, startup, threads
from bench.figures import Result, Step

NAMES = ("calls", "threads", "startup", "forum")


def _runs(repetitions: int, thread_count: int) -> dict[str, Callable[[Step], Result]]:
    return {
        "calls": lambda step: calls.run(20 * repetitions, step),
        "threads": lambda step: threads.run(20 * repetitions, thread_count, step),
        "startup": lambda step: startup.run(repetitions, step),
        "forum": lambda step: forum.run(max(repetitions // 4, 2), step),
    }


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(NAMES))
@click.option(
    "--repetitions", default=20, show_default=True, type=click.IntRange(min=5),
    help="How often each is repeated; what is short, 20 times as often.",
)  # fmt: skip
@click.option(
    "--threads", "thread_count", default=2, show_default=True, type=click.IntRange(1, 256),
    help="Threads that launch at once.",
)  # fmt: skip
@click.option(
    "--out", default=native.OUT, show_default=True, type=click.Path(path_type=Path),
    help="Directory for the results as JSON.",
)  # fmt: skip
def main(names: tuple[str, ...], repetitions: int, thread_count: int, out: Path) -> None:
    """Measure all benchmarks, or those that NAMES says, and compare them with their targets.

    A missed target is reported and is no failure; the exit code is 1 if a benchmark broke.
    """
    console = Console(width=None if sys.stdout.isatty() else 110)
    results: list[Result] = []
    broken = False
    runs = _runs(repetitions, thread_count)
    for name in names or NAMES:
        with console.status(name) as status:

            def step(text: str, name: str = name) -> None:
                if console.is_terminal:
                    status.update(f"{name}: {text}")
                else:
                    print(f"{name}: {text}", flush=True)

            try:
                results.append(runs[name](step))
            except (native.Failed, lower.ToolchainMissing, lower.LoweringFailed) as problem:
                console.print(f"[bold red]{name} could not be measured:[/] {problem}")
                broken = True
                continue
        report.show(results[-1], console)
    report.show_summary(results, console)
    if results:
        console.print(f"written to {report.write(results, out)}")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
