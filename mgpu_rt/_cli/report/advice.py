"""Derives advice from statistics. Each piece of advice has its evidence and a next step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from mgpu_rt._cli.stats.statistics import MANY, NOT_REUSED, Counter, Statistics, total
from mgpu_rt._cli.stats.tables import PART, asks_often, questions, waits
from mgpu_rt._text import NONE, duration, size


class Advice(NamedTuple):
    title: str
    evidence: str
    step: str  # the next step
    is_note: bool = False  # the note explains the figures and asks for no change


def advice(run: Statistics) -> list[Advice]:
    """Returns the advice that suggests a change, and then the notes."""
    return [*_of_processes(run), *_of_caches(run), *(() if untimed(run) else _of_times(run))]


def untimed(run: Statistics) -> str:
    """Returns why there is no advice about times, or ""."""
    if run.graphs.launches:
        return "launches of graphs are in no call's time"
    return "no GPU was timed" if run.device and run.device.warning else ""


def _sum(run: Statistics, *functions: str) -> Counter:
    return total(run.program.get(name, Counter(0, 0)) for name in functions)


def _of_processes(run: Statistics) -> Iterator[Advice]:
    if failed := run.failed:
        yield Advice(
            f"{plural(sum(failed.values()), 'call')} failed",
            "; ".join(run.failures) + ".",
            "The program's stderr has advice for each cause.",
        )
    if found := [process for process in run.processes if not process.by_exit]:
        yield Advice(
            f"{plural(len(found), 'process', 'processes')} did not end by exit",
            f"{found[0].program}, process {found[0].pid}, was killed, ended by _exit or exec, or "
            "still runs. The figures are those up to then.",
            "If you expected it to exit, run `mgpu-rt doctor` to check the machine; "
            "MGPU_RT_VERBOSE=1 prints the library's decisions before the end.",
        )


def _of_caches(run: Statistics) -> Iterator[Advice]:
    if run.is_stock:
        counted = plural(_sum(run, "mgpuModuleLoad").calls, "module load")
        yield Advice(
            "No cache was in use",
            f"{counted} and no cache answered, as with MGPU_RT_CACHE=off.",
            "Leave MGPU_RT_CACHE unset.",
        )
        return
    loads, unloads = (_sum(run, f"mgpuModule{name}").calls for name in ("Load", "Unload"))
    keeps_modules = unloads < loads / 2
    for module in run.modules:
        if module.why and module.driver_loads >= 2:
            kernels = f" with {', '.join(module.kernels[:3])}" if module.kernels else ""
            globals_ = (
                'names the globals: make them private constants (`memref.global "private" '
                "constant`), or pass them to the kernel in a buffer."
            )
            yield Advice(
                f"A module is loaded {module.driver_loads:,} times: {module.why}",
                f"Image {module.image} ({size(module.bytes)}{kernels}).",
                "`mgpu-rt inspect PROGRAM` (after `mgpu-rt lower`, if it is a .mlir file) "
                + (globals_ if "global" in module.why else "shows the image."),
            )
        elif not module.why and module.driver_loads >= MANY and keeps_modules:
            yield Advice(
                f"A module is loaded {module.driver_loads:,} times: the program holds it",
                f"Image {module.image}. The library reuses a module that the program has unloaded.",
                "Load the image once, or call mgpuModuleUnload after the last launch of each load.",
            )
    if run.unreused_streams:
        yield Advice(
            NOT_REUSED.capitalize(),
            f"{run.unreused_streams}.",
            "End each chain of tokens by a `gpu.wait` without `async` (in C: mgpuStreamDestroy): "
            "MLIR then destroys the chain's stream, and the library reuses it. List a token of "
            "each chain there, even if a `gpu.wait async` joined the chain to another.",
        )
    if run.made.waits >= MANY:
        yield Advice(
            "Freed memory waits for other chains of tokens",
            f"{run.made.waits:,} blocks came from the driver while freed blocks "
            "of their size waited for a stream at work.",
            "Let `gpu.dealloc` depend on the last token of each chain that uses the buffer, and "
            "end a round by a `gpu.wait` without `async` if its results are needed anyway. Threads "
            "that work at once also need blocks of their own: this needs no change.",
        )


def _of_times(run: Statistics) -> Iterator[Advice]:
    whole = total(run.program.values()).ns
    calls = _sum(run, "mgpuMemHostRegister", "mgpuMemHostRegisterMemRef")
    both = calls + _sum(run, "mgpuMemHostUnregister", "mgpuMemHostUnregisterMemRef")
    if calls.calls >= MANY and both.ns >= PART * whole:
        yield Advice(
            "The program registers host memory again and again",
            f"{plural(calls.calls, 'registration')} and their unregistrations took "
            f"{duration(both.ns)}, {share(both.ns, whole)} of the program's calls.",
            f"{_exclusive(run, ': memory then stays registered')} Else register it once, before "
            "the loop.",
        )
    asked = total(questions(run.driver).values())
    if asks_often(run):
        yield Advice(
            "The library asks the driver often",
            f"{plural(asked.calls, 'question')} took {duration(asked.ns)}, "
            f"{share(asked.ns, whole)} of the program's calls.",
            _exclusive(run),
        )
    waited = waits(run.driver)
    if waited.calls and waited.ns > whole / 2:
        yield Advice(
            f"{share(waited.ns, whole)} of the time the program waits for the GPU",
            f"{plural(waited.calls, 'wait')} took {duration(waited.ns)}.",
            "Faster calls cannot shorten this; faster kernels, fewer copies or overlap can.",
            is_note=True,
        )


def _exclusive(run: Statistics, effect: str = "") -> str:
    """Returns the advice to use --exclusive. If other code or an override ends that mode, the
    advice names the cause."""
    # The words of csrc/runtime/driver/witness.c; tests of both share them (test_word.py).
    if "ended MGPU_RT_EXCLUSIVE=on" in run.other_calls or " was the first" in run.other_calls:
        return (
            f"If you can leave out the code that calls HIP beside the library ({run.other_calls}), "
            f"run it with mgpu-rt run --exclusive{effect}."
        )
    return f"If nothing else in the process calls HIP, run it with mgpu-rt run --exclusive{effect}."


def plural(number: int, one: str, many: str | None = None) -> str:
    """Formats a count with its noun: 1 call, 2 calls."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.0f} %" if whole else NONE
