"""Guards of the options, of start, fork and exit."""

from __future__ import annotations

from tests.runtime.guards.guard import CANCELLED, GPU_TIMES, OPTIONS, Guard

LIFECYCLE = [
    Guard(
        "base/cancel.h",
        "    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);\n",
        "    before = PTHREAD_CANCEL_ENABLE;\n",
        f"{CANCELLED}:test_a_first_call_that_records_cannot_be_cancelled",
    ),
    Guard(
        "base/cancel.h",
        "    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);\n",
        "    before = PTHREAD_CANCEL_ENABLE;\n",
        f"{CANCELLED}:test_an_exit_cannot_be_cancelled",
    ),
    Guard(
        "base/options.c",
        "caches |= bit;",
        "caches = ALL_CACHES;",
        f"{OPTIONS}:test_only_named_caches_are_on",
    ),
    Guard(
        "lifecycle.c",
        "options.trace_gpu_on && ",
        "",
        f"{GPU_TIMES}:test_nothing_is_timed_unless_asked_for",
    ),
    Guard(
        "lifecycle.c",
        "&gpu_times_cache,",
        "",
        f"{GPU_TIMES}:test_a_device_that_was_reset_has_none_of_the_events",
    ),
    Guard(
        "lifecycle.c",
        "        gpu_times_close();\n        registrations_end();\n",
        "        registrations_end();\n",
        f"{GPU_TIMES}:test_an_exit_reads_finished_events",
    ),
    Guard(
        "lifecycle.c",
        "    gpu_times_close();\n    recorder_close",
        "    recorder_close",
        f"{GPU_TIMES}:test_a_quick_exit_reads_finished_events",
    ),
    Guard(
        "base/options.c",
        "secure_getenv(variable)",
        "getenv(variable)",
        f"{OPTIONS}:test_a_set_uid_program_takes_no_code_and_no_paths",
    ),
    Guard(
        "lifecycle.c",
        "options.caches && hip_version >= HIP_7",
        "options.caches",
        "tests.runtime.test_held_back:test_nothing_goes_back_at_exit",
    ),
    Guard(
        "lifecycle.c",
        "        report_held();",
        "        (void)caches_give_back();\n        report_held();",
        "tests.runtime.test_held_back:test_nothing_goes_back_at_exit",
    ),
]
