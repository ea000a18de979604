"""Guards of what is recorded: counts, files, the trace, the times of the GPU."""

from __future__ import annotations

from tests.runtime.guards.guard import COUNTED, GPU_TIMES, LAZY_LOAD, PLACES, TRACE, Guard

RECORDING = [
    Guard(
        "base/counters.c",
        "MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0)",
        "MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)",
        f"{COUNTED}:test_a_child_of_fork_leaves_its_parents_file_alone",
    ),
    Guard(
        "base/output.c",
        "!S_ISREG(found.st_mode) || !lock(old) || is_of_the_living(old)",
        "!S_ISREG(found.st_mode)",
        f"{COUNTED}:test_a_living_process_keeps_its_file",
    ),
    Guard(
        "base/output.c",
        "!lock(old) || ",
        "",
        f"{PLACES}:test_a_file_that_is_locked_is_held",
    ),
    Guard(
        "base/output.c",
        "    (void)lock(file);\n",
        "",
        f"{PLACES}:test_a_recording_is_locked",
    ),
    Guard(
        "base/output.c",
        "!lock(old) || is_of_the_living(old)",
        "!lock(old)",
        f"{PLACES}:test_a_program_that_becomes_another_leaves_its_recording",
    ),
    Guard(
        "base/output.c",
        "OUTPUT_DESCRIPTOR : OUTPUT_LINK;",
        "OUTPUT_DESCRIPTOR : OUTPUT_FILE;",
        f"{PLACES}:test_a_link_is_refused_at_the_first_call",
    ),
    Guard(
        "base/output.c",
        "O_RDONLY | O_NOFOLLOW | O_NONBLOCK |",
        "O_RDONLY | O_NONBLOCK |",
        f"{PLACES}:test_no_link_is_followed_to_a_second_name",
    ),
    Guard(
        "base/output.c",
        "O_RDONLY | O_NOFOLLOW | O_NONBLOCK |",
        "O_RDONLY | O_NOFOLLOW |",
        f"{PLACES}:test_no_fifo_is_opened_for_a_second_name",
    ),
    Guard(
        "base/output.c",
        "(void)fchmod(file, old.st_mode & 0777);",
        "(void)file;",
        f"{PLACES}:test_a_mode_is_kept",
    ),
    Guard(
        "base/output.c",
        " && old.st_uid == geteuid()",
        "",
        f"{PLACES}:test_a_mode_of_another_user_is_not_kept",
    ),
    Guard(
        "base/output.c",
        "O_WRONLY | O_NONBLOCK |",
        "O_WRONLY |",
        f"{PLACES}:test_a_fifo_is_not_waited_for_at_exit",
    ),
    Guard(
        "base/output.c",
        "    return publish(output);\n}\n\nvoid output_close",
        "    return rename(output->beside, output->path) == 0;\n}\n\nvoid output_close",
        f"{PLACES}:test_a_name_that_another_has_by_the_exit_stays_its",
    ),
    Guard(
        "base/output_write.c",
        "    sigaddset(&ours, SIGXFSZ);\n",
        "",
        f"{PLACES}:test_a_limit_at_exit_is_no_signal",
    ),
    Guard(
        "base/output.c",
        "output->place != OUTPUT_FILE || !is_within_limit(size)",
        "output->place != OUTPUT_FILE",
        f"{COUNTED}:test_a_limit_of_file_sizes_is_kept_to",
    ),
    Guard(
        "recording/gpu_times.c",
        " && is_timeable(stream)",
        "",
        f"{GPU_TIMES}:test_no_event_goes_to_a_stream_that_hip_has_destroyed",
        also=("static bool is_timeable", "__attribute__((unused)) static bool is_timeable"),
    ),
    Guard(
        "recording/gpu_times.c",
        "    if (error == hipErrorNotReady)\n        return false;\n",
        "",
        f"{GPU_TIMES}:test_a_full_ring_is_not_waited_for",
    ),
    Guard(
        "recording/gpu_times.c",
        "fetch_add_relaxed(&next, 1) % RING",
        "load_relaxed(&next) % RING",
        f"{GPU_TIMES}:test_a_slow_stream_does_not_keep_out_others",
        also=(
            "    leave_work(work, is_timed ? SUBMITTED : FREE);\n",
            "    leave_work(work, is_timed ? SUBMITTED : FREE);\n    next++;\n",
        ),
    ),
    Guard(
        "recording/gpu_times.c",
        "work->device != device",
        "false",
        f"{GPU_TIMES}:test_events_are_of_the_device_that_they_are_recorded_on",
    ),
    Guard(
        "recording/gpu_times.c",
        "(void)device_kept(device);",
        "",
        f"{GPU_TIMES}:test_a_device_that_was_reset_has_none_of_the_events",
    ),
    Guard(
        "recording/gpu_times.c",
        "runtime_forked || ",
        "",
        f"{GPU_TIMES}:test_a_child_of_fork_times_nothing",
    ),
    Guard(
        "recording/gpu_times.c",
        "error == hipSuccess && !is_forgotten(work) &&",
        "!is_forgotten(work) &&",
        f"{GPU_TIMES}:test_the_error_of_a_launch_stays",
    ),
    Guard(
        "recording/gpu_times.c",
        "        device_forget_error(error);\n",
        "        (void)device_forget_error;\n",
        f"{GPU_TIMES}:test_an_error_of_an_event_is_not_the_programs",
    ),
    Guard(
        "recording/gpu_times.c",
        "        device_forget_error(error);\n",
        "        (void)device_forget_error;\n",
        f"{GPU_TIMES}:test_no_reference_is_no_error_of_the_programs",
    ),
    Guard(
        "recording/gpu_times.c",
        " && stats_now() < end)",
        " && end)",
        f"{GPU_TIMES}:test_a_first_stream_that_waits_for_the_program_is_left",
    ),
    Guard(
        "recording/gpu_times.c",
        "hip_untimed.name != hip_missing.name",
        "true",
        f"{GPU_TIMES}:test_no_event_is_put_around_what_hip_lacks",
    ),
    Guard(
        "recording/recorder.c",
        "ranges_find(call->from, call->bytes) == RANGE_NONE &&",
        "",
        f"{TRACE}:test_a_copy_that_needs_no_pinned_memory_says_nothing_of_it",
    ),
    Guard(
        "recording/recorder.c",
        "way == COPY_FROM_DEVICE && ranges_find(call->to, call->bytes) == RANGE_NONE",
        "way == COPY_FROM_DEVICE",
        f"{TRACE}:test_a_copy_that_needs_no_pinned_memory_says_nothing_of_it",
    ),
    Guard(
        "recording/recorder.c",
        "!(cuda_present() && call->bytes <= STAGING_CUDA_TAKES)",
        "true",
        f"{TRACE}:test_a_small_copy_is_nvidias_drivers",
    ),
    Guard(
        "recording/recorder.c",
        "!copied.to || ",
        "",
        f"{TRACE}:test_a_copy_that_was_refused_went_no_way",
    ),
    Guard(
        "recording/recorder.c",
        "    copied.to = copied.from = NULL;\n",
        "",
        f"{TRACE}:test_a_copy_that_was_refused_went_no_way",
    ),
    Guard(
        "recording/recorder.c",
        "    set_meaning(&modules, loaded.module, row < MODULES ? row + 1 : 0);\n",
        "",
        f"{LAZY_LOAD}:test_the_image_is_counted_by_both_its_handles",
    ),
    Guard(
        "recording/recorder.c",
        "(void)stats_take_decision();",
        "",
        f"{COUNTED}:test_a_miss_outside_of_the_abi_is_no_calls",
    ),
    Guard(
        "recording/recorder.c",
        "if (!runtime_counting())\n        return;",
        "",
        f"{COUNTED}:test_nothing_is_counted_that_was_not_asked_for",
    ),
]
