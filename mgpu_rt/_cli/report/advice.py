"""Derives advice from the files. Each piece of advice has its evidence and a next step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mgpu_rt._cli.report.format import count, duration, plural, share, size
from mgpu_rt._cli.report.inputs import LARGE, Run
from mgpu_rt._cli.stats.statistics import Counter, total
from mgpu_rt._cli.stats.tables import questions, waits

MANY = 10  # a loop repeats more often than this
PART = 0.1  # relative to the calls' time: a smaller part is not worth a change


@dataclass(frozen=True)
class Advice:
    """A finding."""

    title: str
    evidence: str
    step: str  # the next step
    is_note: bool = False  # the note explains the figures and asks for no change


def advice(run: Run) -> list[Advice]:
    """Returns the advice that suggests a change, and then the notes."""
    device = run.statistics.device
    timed = () if device and device.warning else _RULES_OF_TIMES
    found = [item for rule in (*_RULES, *timed) for item in rule(run)]
    return sorted(found, key=lambda item: item.is_note)


def _program_ns(run: Run) -> int:
    return total(run.statistics.program.values()).ns


def _of(run: Run, *functions: str) -> Counter:
    """Sums the program's calls to these functions, and the calls' times."""
    return total(run.statistics.program.get(name, Counter(0, 0)) for name in functions)


# ---- the caches ----


def _no_cache(run: Run) -> Iterator[Advice]:
    if run.is_stock:
        loads = _of(run, "mgpuModuleLoad").calls
        yield Advice(
            "No cache was in use",
            f"{plural(loads, 'module load')} and no cache answered, as with MGPU_RT_CACHE=off.",
            "Leave MGPU_RT_CACHE unset.",
        )


def _private_modules(run: Run) -> Iterator[Advice]:
    for module in run.details.modules or []:
        if not module.why or module.driver_loads < 2 or run.is_stock:
            continue
        kernels = f" with {', '.join(module.kernels[:3])}" if module.kernels else ""
        is_global = "global" in module.why
        yield Advice(
            f"A module is loaded {count(module.driver_loads)} times: {module.why}",
            f"Image {module.image} ({size(module.bytes)}{kernels}).",
            "`mgpu-rt inspect PROGRAM` names the globals: make them constants, or pass them to the "
            "kernel in a buffer."
            if is_global
            else "`mgpu-rt inspect PROGRAM` shows the image.",
        )


def _unshared_modules(run: Run) -> Iterator[Advice]:
    """Advises on module loads that the cache did not serve. Applies only to files without a list of
    modules."""
    cache = run.statistics.caches.get("modules")
    if run.details.modules is not None or cache is None or run.is_stock:
        return
    unserved = _of(run, "mgpuModuleLoad", "mgpuModuleLoadJIT").calls - cache.hits - cache.misses
    if unserved >= 2:
        yield Advice(
            f"{count(unserved)} loads of modules could not be shared",
            "The cache passed them on to the driver as they were.",
            "`mgpu-rt inspect PROGRAM` says why for each image, such as writable globals.",
        )


def _streams(run: Run) -> Iterator[Advice]:
    cache = run.statistics.caches.get("streams")
    if cache is None or cache.misses < MANY or cache.misses <= cache.hits:
        return
    made, gone = _of(run, "mgpuStreamCreate").calls, _of(run, "mgpuStreamDestroy").calls
    step = (
        "End each chain of tokens by a `gpu.wait` without `async`: MLIR then destroys the chain's "
        "stream, and the library reuses it. MLIR never destroys the stream of a chain that joins "
        "another by `gpu.wait async`; such a stream costs one hipStreamCreate."
        if gone < made / 2
        else "They still had work when the program created the next one: wait for a stream, or use "
        "one for more work. MGPU_RT_STREAM_LIMIT (32) bounds the streams that are kept."
    )
    yield Advice(
        "Streams are not reused",
        f"{count(cache.misses)} of {count(made)} streams came from the driver; the program "
        f"destroyed {count(gone)}.",
        step,
    )


def _waiting_memory(run: Run) -> Iterator[Advice]:
    waits = run.statistics.made.waits
    if waits >= MANY:
        yield Advice(
            "Freed memory waits for other chains of tokens",
            f"{count(waits)} blocks came from the driver while freed blocks of their size waited "
            "for a stream at work.",
            "Let `gpu.dealloc` depend on the last token of each chain that uses the buffer, and "
            "end a round by a `gpu.wait` without `async` if its results are needed anyway.",
        )


#: For each cache: its objects, the HIP functions that create and destroy them, and the option that
#: raises the cache's limit.
_LIMITS = {
    "modules": ("Modules", "hipModuleLoadData", "hipModuleUnload", "MGPU_RT_MODULE_LIMIT (256M)"),
    "streams": ("Streams", "hipStreamCreate", "hipStreamDestroy", "MGPU_RT_STREAM_LIMIT (32)"),
    "memory": ("Blocks of memory", "hipMalloc", "hipFree", "MGPU_RT_MEMORY_LIMIT (0.25)"),
}


def _limits(run: Run) -> Iterator[Advice]:
    """Ignores objects that the driver destroyed after creating the last object, because the end of
    a run also destroys objects."""
    if run.trace is None:
        return
    for name, (things, make, take, option) in _LIMITS.items():
        made, taken = run.trace.driver.get(make), run.trace.driver.get(take)
        cache = run.statistics.caches.get(name)
        if not (made and taken and cache):
            continue
        last = max(made.begins)
        early = min(sum(moment < last for moment in taken.begins), cache.evictions)
        if early >= MANY:
            yield Advice(
                f"{things} leave the cache, and the program needs them again",
                f"The cache evicted {count(early)} before the program created the last one.",
                f"Set {option} higher than its default if there is room.",
            )


def _questions(run: Run) -> Iterator[Advice]:
    asked = total(questions(run.statistics.driver).values())
    if not run.is_stock and asked.calls >= MANY and asked.ns >= PART * _program_ns(run):
        yield Advice(
            "The library asks the driver often",
            f"{plural(asked.calls, 'question')} took {duration(asked.ns)}, "
            f"{share(asked.ns, _program_ns(run))} of the program's calls.",
            "If nothing else in the process calls HIP, run it with mgpu-rt run --exclusive.",
        )


# ---- the program ----


def _registrations(run: Run) -> Iterator[Advice]:
    calls = _of(run, "mgpuMemHostRegister", "mgpuMemHostRegisterMemRef")
    both = calls + _of(run, "mgpuMemHostUnregister", "mgpuMemHostUnregisterMemRef")
    if calls.calls >= MANY and both.ns >= PART * _program_ns(run):
        yield Advice(
            "The program registers host memory again and again",
            f"{plural(calls.calls, 'registration')} and their unregistrations took "
            f"{duration(both.ns)}, {share(both.ns, _program_ns(run))} of the program's calls.",
            "If nothing else in the process calls HIP, run it with mgpu-rt run --exclusive: memory "
            "then stays registered. Else register it once, before the loop.",
        )


def _copies(run: Run) -> Iterator[Advice]:
    found = run.trace and run.trace.results.get(("mgpuMemcpy", "bypass"))
    if not found or found.calls < MANY or run.is_stock:
        return
    small = found.calls - found.large
    if found.large >= small:
        cause = f"{count(found.large)} of them are larger than {size(LARGE)}"
        step = (
            "Split them: the library stages copies of up to 512 KB to the device and 16 MB from it."
        )
    elif found.behind > small / 2:
        cause = f"{count(found.behind)} of them found their stream at work"
        step = "Wait for the stream before a copy to the device."
    else:
        cause = "They are small, and this trace shows no earlier work on their streams"
        step = "HIP may know their host memory, or more than 16 streams copied at once."
    yield Advice(
        "Copies do not go through pinned memory",
        f"{plural(found.calls, 'copy', 'copies')} of {size(found.bytes)} in all did not pass "
        f"through memory that is already pinned. {cause}.",
        f"{step} Or register their host memory once (docs/how-it-works.md).",
    )


def _errors(run: Run) -> Iterator[Advice]:
    if run.statistics.failed:
        yield Advice(
            f"{plural(sum(run.statistics.failed.values()), 'call')} failed",
            "; ".join(run.statistics.failures) + ".",
            "The program's stderr has advice for each cause.",
        )


def _ending(run: Run) -> Iterator[Advice]:
    found = [process for process in run.details.processes if not process.by_exit]
    if found:
        yield Advice(
            f"{plural(len(found), 'process', 'processes')} did not end by exit",
            f"{found[0].program}, process {found[0].pid}, was killed, ended by _exit or exec, or "
            "still runs. The figures are those up to then.",
            "If you expected it to exit, run `mgpu-rt doctor` to check the machine; "
            "MGPU_RT_VERBOSE=1 prints the library's decisions before the end.",
        )


# ---- notes that explain the figures ----


def _waiting(run: Run) -> Iterator[Advice]:
    waited = waits(run.statistics.driver)
    if waited.calls and waited.ns > _program_ns(run) / 2:
        yield Advice(
            f"{share(waited.ns, _program_ns(run))} of the time the program waits for the GPU",
            f"{plural(waited.calls, 'wait')} took {duration(waited.ns)}.",
            "Faster calls cannot shorten this; faster kernels, fewer copies or overlap can.",
            is_note=True,
        )


def _lost(run: Run) -> Iterator[Advice]:
    if run.trace and run.trace.lost:
        yield Advice(
            "The trace is incomplete",
            f"It holds {count(run.trace.kept)} of "
            f"{plural(run.trace.kept + run.trace.lost, 'event')}. "
            "With statistics, the tables count all of them.",
            "Trace a run of fewer iterations to see all of it.",
            is_note=True,
        )


_RULES: tuple[Callable[[Run], Iterator[Advice]], ...] = (
    _errors,
    _ending,
    _no_cache,
    _private_modules,
    _unshared_modules,
    _streams,
    _waiting_memory,
    _limits,
    _copies,
    _lost,
)

#: The rules that weigh times; `advice` skips these rules if no GPU was timed.
_RULES_OF_TIMES: tuple[Callable[[Run], Iterator[Advice]], ...] = (
    _registrations,
    _questions,
    _waiting,
)
