"""Rules for every test: its worker, and the meaning of a missing tool.

Hooks for pytest: tests/conftest.py and softgpu/tests/conftest.py import them.
"""

from __future__ import annotations

import functools
import gc
import os
import re
import resource
import signal
from collections.abc import Callable, Container, Iterable
from itertools import combinations
from typing import TYPE_CHECKING

import pytest
from _pytest.mark.expression import Expression

from mgpu_rt._lowering.toolchain import ToolchainMissing

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet
    from xdist.scheduler import LoadScopeScheduling

#: Folders whose tests share files that are made once in a session; one worker runs all tests of a
#: folder.
TOGETHER = (
    "tests/release/examples/",  # `make install`
    "tests/release/install/",
    "tests/devices/rocm/",  # the release that is fetched
)

#: Files whose tests share nothing: each test goes to the next free worker.
APART = (
    "tests/proofs/mutants/test_without.py",
    "softgpu/tests/isa/test_decoder.py",
)

#: The number of workers of `-n auto`. On two cores, a third worker took 31 CPU-seconds of 381: it
#: collects all tests, and starts nurseries of its own.
CORES = len(os.sched_getaffinity(0))
WORKERS = min(CORES, 12)

#: CI has every tool: on CI, a test that lacks a tool fails.
ON_CI = os.environ.get("CI") == "true"
LACKS = " is missing"  # the words of every reason to skip that names a tool or a package


def covering(cases: Iterable[tuple], strength: int = 2) -> list[ParameterSet]:
    """Returns parameters for a test. `make test` runs a covering array of the cases: any values of
    `strength` columns that occur together in some case. The other cases are run by `make check`."""
    rows = {case: set(combinations(enumerate(case), strength)) for case in cases}
    chosen, left = set(), set().union(*rows.values())
    while left:
        best = max(rows, key=lambda case: len(rows[case] & left))
        chosen.add(best)
        left -= rows[best]
    return in_check(rows, lambda *case: case not in chosen)


#: The markers of tests that `make test` leaves out. Each test has at most one of them.
SUITES = {
    "check": "guards every change and takes longer; run by make check",
    "gpu": "needs a GPU; run by hand with -m gpu",
    "check_isa": "takes minutes; run by make check-isa",
    "sanitize": "needs the builds of make sanitize, which runs them",
    "check_install": "takes minutes; run by make check-install",
    "nightly": "more of what make check samples; run by make nightly",
}

#: The expression that selects this run's tests by their markers (-m).
_selected = ""


def pytest_configure(config: pytest.Config) -> None:
    """Declares the suites' markers, and stores which suites run: `-m test` stands for the tests
    without such a marker. Restores SIGINT for the programs that tests start, because
    background jobs of a shell, and their children, ignore SIGINT. Programs that a signal ends leave
    no core file."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for name, text in SUITES.items():
        config.addinivalue_line("markers", f"{name}: {text}")
    global _selected
    _selected = re.sub(r"\btest\b", f"not ({' or '.join(SUITES)})", config.option.markexpr)
    config.option.markexpr = _selected
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def in_check(values: Iterable, chosen: Callable[..., bool]) -> list[ParameterSet]:
    """Returns parameters for a test. For the parameters that `chosen` selects, only `make check`
    runs the test."""
    rows = [value if isinstance(value, tuple) else (value,) for value in values]
    marks = pytest.mark.check
    return selected([pytest.param(*row, marks=marks if chosen(*row) else ()) for row in rows])


def sampled(values: Iterable, sample: Container) -> list[ParameterSet]:
    """Returns parameters for a test: `make check` runs it for those in the sample, `make nightly`
    for the others."""
    check, nightly = pytest.mark.check, pytest.mark.nightly
    params = [pytest.param(value, marks=check if value in sample else nightly) for value in values]
    return selected(params)


def selected(params: list[ParameterSet]) -> list[ParameterSet]:
    """Leaves out the parameters that no selected suite runs, unless these are all."""
    kept = [p for p in params if all(runs(m.name) for m in p.marks if m.name in SUITES)]
    return kept or params


@functools.cache
def runs(suite: str) -> bool:
    """Returns whether this run may include tests of a suite. Tables leave out the cases that no
    selected suite runs, because each worker takes 0.4 ms to collect a case."""
    return not _selected or Expression.compile(_selected).evaluate(lambda name, **_: name == suite)


def scope(test: str) -> str:
    """Returns the name of the group of tests that one worker runs: a folder in TOGETHER, or a file.
    Each test of a file in APART is a separate group."""
    for folder in TOGETHER:
        if test.startswith(folder):
            return folder
    file = test.partition("::")[0]
    return test if file in APART else file


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuses a test of two suites: the mark of its file would put what `make nightly` or `make
    check-isa` runs into `make check`."""
    for item in items:
        suites = {mark.name for mark in item.iter_markers() if mark.name in SUITES}
        if len(suites) > 1:
            raise pytest.UsageError(f"{item.nodeid} is marked {' and '.join(sorted(suites))}")


def pytest_collection_finish() -> None:
    """Exempts the collected tests from garbage collection: each pass over them takes 0.2 s."""
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadScopeScheduling:
    from xdist.scheduler import LoadScopeScheduling

    scheduler = LoadScopeScheduling(config, log)  # type: ignore[arg-type]
    scheduler._split_scope = scope  # type: ignore[method-assign]
    return scheduler


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    return WORKERS


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo) -> pytest.TestReport:
    """Skips a test that lacks a tool; on CI, the test fails."""
    report = yield
    if call.excinfo and call.excinfo.errisinstance(ToolchainMissing):
        path, line, _ = item.location
        report.outcome = "skipped"
        report.longrepr = (path, line or 0, f"Skipped: {call.excinfo.value}")
    if ON_CI and report.skipped and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2].removeprefix("Skipped: ")
        if LACKS in reason:
            report.outcome, report.longrepr = "failed", reason
    return report
