"""Rules for every test: its turn in `make check`, its worker, and the meaning of a missing tool.

Hooks of pytest's: tests/conftest.py and softgpu/tests/conftest.py import them.
"""

from __future__ import annotations

import os
import re
import resource
import signal
from typing import TYPE_CHECKING

import pytest

from mgpu_rt.lowering.toolchain import ToolchainMissing

if TYPE_CHECKING:
    from xdist.scheduler import LoadScopeScheduling

#: Patterns of the names of tests that `make check` runs, and `make test` does not.
CHECK = (
    # The library and the Python without each proof.
    r"tests/proofs/test_(without|bytes)\.py",
    r"tests/manager/test_hosting_tsan\.py",
    # With the manager beside; `make test` has its own tests, and all programs run with it.
    r"tests/(?!manager/).*\[python-",
    # Three threads, and two over events; `make test` has two over all else.
    r"tests/interleavings/.*::test_(all_that|the_explorer)_",
    r"tests/interleavings/.*::test_every_state_of_two_threads_is_as_types_h_says\[events\]",
    # Wheels and environments to install them in.
    r"tests/install/",
    # Walks of all errors on the emulated device; `make test` has them on the stub of HIP.
    r"tests/runtime/test_last_error\.py::test_(every|the_library|events)_\w+\[softgpu",
    r"tests/runtime/test_memory_random\.py::test_random_allocations_on_(the_stub|softgpu)_\w+\[mode\d+-[123]-",
    # More events than are kept, which Python reads.
    r"tests/runtime/test_trace\.py::test_the_newest_million",
    # `make test` has some of the emulator's proof: gfx90a, gfx942's own instructions, whole kernels
    # and the rarer modes.
    r"softgpu/tests/(isa|kernels)/.*\bgfx90[68]\b",
    r"softgpu/tests/isa/test_(instructions|lanes)\.py.*\bgfx942\b",
    r"softgpu/tests/isa/test_decoder\.py::test_device_library_decodes_as_by_llvm",
    r"softgpu/tests/isa/test_(memory|modified|pseudocode)\.py",
    r"softgpu/tests/isa/test_gfx942\.py::test_(8_bit_floats_are_rounded_by_chance|pairs_of_8_bit)",
    r"softgpu/tests/isa/test_table\.py::test_whole_kernels",
    r"softgpu/tests/device/test_engine\.py::test_the_longest_copy",
    r"softgpu/tests/csmith/",
    # Kept results of AMD's compiler; `make test` has HIP's start from them.
    r"softgpu/tests/device/test_compiler_cache\.py::test_(?!hip_starts)",
    # A newer release of HIP, which is downloaded.
    r"tests/rocm/test_release\.py",
    # Older LLVMs just in time, hoisted and by Python; `make test` has them ahead of time.
    r"tests/programs/test_jit\.py::test_jit_is_as_ahead_of_time\[.*-1[59]\]",
    r"tests/hoist/test_programs\.py.*[\[-]19\b",
    r"tests/python_runtime/test_programs\.py.*-(15|19)-",
    r"tests/random_driver/.*::test_random_programs_with_runtimes_\w+\[stub, reuse-",
    # Which function calls which, in the whole library.
    r"tests/runtime/test_layers\.py::test_no_files_call_each_other_in_a_circle",
    # Programs built against an installed library.
    r"tests/examples/test_(c|mpi|runner)\.py",
    # A whole selftest, and one that is interrupted.
    r"tests/selftest/test_selftest\.py::test_(results|file|page|schema|an_interrupt)_",
    # A whole model with hooks, and every Python as a program's host; `make test` has the newest.
    r"tests/python_runtime/test_block\.py",
    r"tests/python_runtime/test_hosting\.py::test_any_python_can_host\[3\.1[01]\]",
    # Tests that run pytest in turn.
    r"tests/docs/test_stress\.py::test_failures_by_chance",
    r"tests/support/test_lacking\.py",
    # The benchmarks by all variants and releases, built anew, and their pictures.
    r"tests/bench/test_bench\.py::test_(prepared_programs_run|the_library_without|every_plot)",
    r"tests/bench/test_bench\.py::test_every_side_runs_every_program\[.*-19\]",
    r"tests/bench/test_models\.py::test_(every_variant|by_hand)",
    r"tests/bench/test_models\.py::test_models_compute_what_numpy_does\[blocks\]",
    r"tests/bench/test_graphs\.py",
    # A session of ten minutes; `make test` has README's.
    r"tests/docs/test_sessions\.py::.*\[docs/tutorial",
)

#: The markers of suites that are run by hand.
BY_HAND = ("gpu", "check_isa", "check_install", "sanitize")

#: Tests that share what is made once a session, so that one worker runs them.
TOGETHER = (
    "tests/examples/",  # `make install`
    "tests/install/",
    "tests/rocm/",  # the release that is fetched
)

#: Files whose tests share nothing: each test goes to the next worker.
APART = (
    "tests/proofs/test_without.py",
    "tests/runtime/test_memory_random.py",
    "softgpu/tests/isa/test_decoder.py",
)

#: The workers of `-n auto`. A third of a test's time it waits: for a child to start, for a stream.
CORES = len(os.sched_getaffinity(0))
WORKERS = min(CORES + (CORES + 1) // 2, 12)

#: On CI every tool is there, so a test that lacks one fails.
ON_CI = os.environ.get("CI") == "true"
LACKS = " is missing"  # the words of every reason to skip that names a tool or a package


def pytest_configure() -> None:
    """Lets SIGINT end what the tests start: a shell's job in the background has it ignored, and so
    has each of its children. A program that ends by a signal leaves no core file beside its own."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


@pytest.hookimpl(tryfirst=True)  # before -m is looked at
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    check = re.compile("|".join(CHECK))
    for item in items:
        by_hand = any(item.get_closest_marker(name) for name in BY_HAND)
        if check.match(item.nodeid) and not by_hand:
            item.add_marker("check")


def scope(test: str) -> str:
    """Returns the name of all that one worker runs: a file, unless the lists above say
    otherwise."""
    for folder in TOGETHER:
        if test.startswith(folder):
            return folder
    file = test.partition("::")[0]
    return test if file in APART else file


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
    """Skips a test that lacks a tool; fails it on CI."""
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
