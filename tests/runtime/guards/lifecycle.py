"""Guards of the options, of start, fork and exit."""

from __future__ import annotations

from tests.runtime.guards.guard import GPU_TIMES, OPTIONS, Guard

LIFECYCLE = [
    Guard(
        "lifecycle.c",
        "options.trace_gpu_on && ",
        "",
        f"{GPU_TIMES}:test_nothing_is_timed_that_was_not_asked_for",
    ),
    Guard(
        "lifecycle.c",
        "    gpu_times_forget();\n",
        "",
        f"{GPU_TIMES}:test_a_device_that_was_reset_has_none_of_the_events",
    ),
    Guard(
        "lifecycle.c",
        "        gpu_times_close();\n        if",
        "        if",
        f"{GPU_TIMES}:test_an_exit_reads_what_is_done",
    ),
    Guard(
        "lifecycle.c",
        "    gpu_times_close();\n    recorder_close",
        "    recorder_close",
        f"{GPU_TIMES}:test_a_quick_exit_reads_what_is_done",
    ),
    Guard(
        "base/options.c",
        "secure_getenv(variable)",
        "getenv(variable)",
        f"{OPTIONS}:test_a_set_uid_program_takes_no_code_and_no_paths",
    ),
]
