"""Lists tests that pass on HIP 5.2.3 but not on a later release. Each entry has a reason, which
docs/record/tested.md shows.

If a program can notice a difference between releases, a test in test_release.py shows the behaviour
of the later release.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

ALL = ("5.7.1", "6.4.3", "7.2.4")
ROCR7 = ("6.4.3", "7.2.4")


@dataclass(frozen=True)
class Difference:
    pattern: str  # part of the test's id
    releases: tuple[str, ...]
    why: str


DIFFERENCES = (
    Difference(
        r"test_compiler_cache\.py",
        ALL,
        "HIP 5.2.3 compiles code at each start, which is cached; later HIPs compile nothing",
    ),
    Difference(
        r"test_an_unknown_kernel_name_is_refused",
        ALL,
        "HIP returns error 400 (invalid handle), and 5.2.3 returns 500 (not found)",
    ),
    Difference(
        r"test_hip_crashes_where_it_gets_the_image_of_the_program",
        ALL,
        "HIP accepts a kernel that needs a default queue; 5.2.3 crashes",
    ),
    Difference(
        r"test_processes_work\[exit_running\]",
        ROCR7,
        "at exit HIP waits for a kernel that never ends",
    ),
    Difference(
        r"test_wrong_settings_are_named\[",
        ROCR7,
        "without a device HIP returns error 100 (no device), 5.2.3 returns 101 (invalid device)",
    ),
    Difference(
        r"test_a_fault_ends_the_process_and_names_the_kernel",
        ("7.2.4",),
        "HIP returns error 700 and continues: test_release.py",
    ),
    Difference(
        r"test_a_failed_check_ends_the_program",
        ("7.2.4",),
        "HIP returns the error of a trap and continues",
    ),
    Difference(
        r"test_jit\.py.*(test_the_guard_proves_something|test_the_compiler_is_the_one)",
        ROCR7,
        "a test of Debian 12's compiler library, which HIP 6 and later do not open",
    ),
    Difference(
        r"test_the_command_runs_the_runner",
        ALL,
        "mgpu-rt run would have to start the release's own loader",
    ),
    Difference(r"test_the_process_has_one_hip", ALL, "a test of the machine's own HIP"),
    Difference(
        r"test_copies_come_back_unchanged",
        ("7.2.4",),
        "HIP's call may return before a copy of 4 MiB or more to pageable memory is done",
    ),
    Difference(
        r"test_a_release_that_leaves_launches_out_says_so_once",
        ALL,
        "HIP captures launches of a module's kernels, which 5.2.3 omits",
    ),
    Difference(
        r"test_an_idle_process_costs_next_to_no_cpu",
        ROCR7,
        "with DTIF, ROCr has no interrupts, so its thread polls",
    ),
)


def difference(test: str, hip: str) -> str:
    """Returns why a test may fail on a release, or an empty text if the test must pass."""
    for known in DIFFERENCES:
        if hip in known.releases and re.search(known.pattern, test):
            return known.why
    return ""
