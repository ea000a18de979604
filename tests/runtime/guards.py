"""The guards of the runtime, each with the test that must fail without it (test_guards.py)."""

from __future__ import annotations

from dataclasses import dataclass

from tests.support.variants import Change


@dataclass(frozen=True)
class Guard:
    """What is changed, and the test (module:function) that must then fail."""

    file: str
    guard: str
    without: str
    test: str
    also: tuple[str, str] | None = None  # a second change, where one alone leaves another guard
    also_file: str = ""  # where that is; "": in the same file
    alone: bool = False  # where others may call HIP, its answer is a second guard

    @property
    def name(self) -> str:
        return self.test.partition(":test_")[2]

    @property
    def changes(self) -> list[Change]:
        changes = [Change(f"csrc/runtime/{self.file}", self.guard, self.without)]
        if self.also:
            changes.append(Change(f"csrc/runtime/{self.also_file or self.file}", *self.also))
        return changes


TRAPS = "tests.runtime.test_traps"
CONSTANTS = "tests.runtime.test_constants"
MEMORY = "tests.runtime.test_memory"
COPIES = "tests.runtime.test_copies"
COUNTED = "tests.runtime.test_counted"
SYNC = "tests.runtime.test_sync"
KNOWN = "tests.runtime.test_known"
LIMITS = "tests.runtime.test_known_limits"
IMAGES = "tests.runtime.test_images"
ADVICE = "tests.runtime.test_advice"
LAZY_LOAD = "tests.runtime.test_lazy_load"
OPTIONS = "tests.runtime.test_options"
LAST_ERROR = "tests.runtime.test_last_error"
GPU_TIMES = "tests.runtime.test_gpu_times"
TRACE = "tests.runtime.test_trace"
LOCAL_RANK = "tests.runtime.test_local_rank"
GUARDS = [
    Guard(
        "hip/device.c",
        "    return rank % count;",
        "    return rank;",
        f"{LOCAL_RANK}:test_a_rank_beyond_the_devices_shares_one",
    ),
    Guard(
        "hip/device.c",
        "    if (is_chosen())\n        return;\n",
        "    (void)is_chosen;\n",
        f"{LOCAL_RANK}:test_a_device_chosen_through_hip_stays_chosen",
    ),
    Guard(
        "calls/module.c",
        "image_lies_at(&module->image, image)",
        "true",
        f"{TRAPS}:test_01_address_reused_for_another_image",
    ),
    Guard(
        "image/image.h",
        "image->size - image->head) == 0",
        "image->size - image->head) <= 1 << 30",
        f"{TRAPS}:test_01_one_byte_differs",
    ),
    Guard(
        "calls/module.c",
        "image.bytes = bytes;\n    return enter",
        "image.bytes = load->data;\n    return enter",
        f"{TRAPS}:test_01_the_callers_copy_may_go_away",
    ),
    Guard(
        "calls/function.c",
        "slot->handle == handle && slot->name == name",
        "slot->name == name",
        f"{TRAPS}:test_02_same_kernel_name_in_two_modules",
        also=(
            "(uintptr_t)module * 31 + (uintptr_t)name",
            "(uintptr_t)name + 0 * (uintptr_t)module",
        ),
        also_file="cache/slots.h",
    ),
    Guard(
        "calls/function.c",
        "strcmp(slot->function->name, name) == 0",
        "true",
        f"{TRAPS}:test_02_address_of_a_name_reused",
    ),
    Guard(
        "image/image_elf.c",
        "if (is_writable(&section, &names))",
        "if (false)",
        f"{TRAPS}:test_03_reload_sees_fresh_globals",
    ),
    Guard(
        "image/image_bundle.c",
        "contents->writable |= image.writable || image.size == 0",
        "contents->writable |= image.size == 0",
        f"{TRAPS}:test_03_globals_in_a_bundle",
    ),
    Guard(
        "cache/stream_pool.c",
        "    queue_put(is_idle ? &idle[stream->device] : &retired[stream->device], stream);",
        "    queue_put(&idle[stream->device], stream);\n    (void)is_idle;",
        f"{TRAPS}:test_04_busy_stream_is_not_handed_out",
        alone=True,
    ),
    Guard(
        "cache/stream.h",
        "        store_release(&stream->submitted, thread_next_ticket(thread));",
        "        (void)thread;",
        f"{TRAPS}:test_04_two_kernels_that_wait_for_each_other",
        alone=True,
    ),
    Guard(
        "cache/stream.c",
        "    store_release(&stream->settled, submitted);",
        "    stream->settled = stream->submitted + 0 * submitted;",
        f"{TRAPS}:test_04_launch_while_a_stream_is_waited_for",
        alone=True,
    ),
    Guard(
        "cache/thread.c",
        "fetch_add_relaxed(&given, TICKET_BLOCK)",
        "given",
        f"{TRAPS}:test_04_first_launch_of_another_thread",
        alone=True,
    ),
    Guard(
        "calls/event.c",
        "event->recorded = false;\n    return",
        "return",
        f"{TRAPS}:test_08_reused_event_was_never_recorded",
    ),
    Guard(
        "calls/event.c",
        "    report_once(&stream_served, (void *)handle);\n    return true;",
        "    report_once(&stream_served, (void *)handle);\n    return false;",
        f"{TRAPS}:test_09_stream_passed_to_event_synchronize",
    ),
    Guard(
        "calls/function.c",
        "module ? &foreign_module : &null_module",
        "&foreign_module",
        f"{TRAPS}:test_11_null_module_is_explained_once",
    ),
    Guard(
        "hip/device.c",
        "        (void)hip.GetLastError();",
        "        (void)0;",
        f"{TRAPS}:test_12_eviction_leaves_no_error",
    ),
    Guard(
        "hip/device.c",
        "if (error != hipErrorNotReady || hip_version < HIP_7)",
        "if (true)",
        f"{TRAPS}:test_12_pending_error_survives",
    ),
    Guard(
        "calls/module.c",
        "module->device == hip_current_device() &&",
        "true &&",
        f"{TRAPS}:test_16_device_chosen_through_hip",
    ),
    Guard(
        "calls/stream.c",
        "stream->device == device && !thread->chosen",
        "!thread->chosen",
        f"{TRAPS}:test_16_device_chosen_through_hip",
    ),
    Guard(
        "cache/registry.c",
        "module->device == device &&",
        "true &&",
        f"{TRAPS}:test_16_device_before_main",
    ),
    Guard(
        "cache/thread.c",
        "if (options.device_number >= 0)",
        "if (false)",
        f"{TRAPS}:test_16_device_before_main",
    ),
    Guard(
        "calls/module.c",
        "mapped_for_good(image, module->image.size)",
        "true",
        f"{TRAPS}:test_01_one_byte_differs",
    ),
    Guard(
        "calls/function.c",
        "mapped_for_good(name, strlen(name) + 1)",
        "true",
        f"{TRAPS}:test_02_address_of_a_name_reused",
    ),
    Guard(
        "hip/mapped.c",
        "!(segment->p_flags & PF_W)",
        "true",
        f"{CONSTANTS}:test_writable_data_of_the_program_are_compared",
    ),
    Guard(
        "hip/mapped.c",
        "(program || promises.never_unloaded)",
        "true",
        f"{CONSTANTS}:test_a_library_that_was_closed_is_compared",
    ),
    Guard(
        "hip/mapped.c",
        "!promises.text_relocations",
        "true",
        f"{CONSTANTS}:test_constants_that_the_loader_relocated_are_compared",
    ),
    Guard(
        "cache/block_pool.c",
        "return !stream || stream_has_passed(",
        "return true || stream_has_passed(",
        f"{TRAPS}:test_05_freed_block_waits_for_its_stream",
    ),
    Guard(
        "cache/block_pool.c",
        "take_idle(&shared_pools[device], size)",
        "block_take(&shared_pools[device], size)",
        f"{MEMORY}:test_shared_memory_waits_for_its_stream",
    ),
    Guard(
        "cache/block_pool.c",
        "    put(block, stream, &shared_pools[block->device]);",
        "    (void)block_put(block, stream);",
        f"{MEMORY}:test_shared_memory_serves_shared_memory_only",
    ),
    Guard(
        "cache/block_pool.c",
        "    if (block->shared)\n        return &shared_pools[block->device];",
        "    if (false)\n        return &shared_pools[block->device];",
        f"{MEMORY}:test_shared_memory_goes_back_for_the_limit",
    ),
    Guard(
        "cache/block_pool.c",
        "        empty_pool(&shared_pools[device]);",
        "        (void)0;",
        f"{MEMORY}:test_shared_memory_is_forgotten_at_a_reset",
    ),
    Guard(
        "cache/block.c",
        "!(exclusive_hip() || block_confirm_shared(block))",
        "false",
        f"{MEMORY}:test_shared_memory_whose_address_came_back_smaller",
    ),
    Guard(
        "cache/block.c",
        "block && device_kept(device) ? (void *)(uintptr_t)block->handle.key",
        "block ? (void *)(uintptr_t)block->handle.key",
        f"{MEMORY}:test_shared_memory_is_forgotten_at_a_reset",
    ),
    Guard(
        "cache/stream.h",
        "load_seq_cst(&stream->marks) + 1",
        "load_seq_cst(&stream->marks)",
        f"{TRAPS}:test_05_synchronise_before_the_free_does_not_count",
    ),
    Guard(
        "calls/event.c",
        "        event->mark = mark;",
        "        event->mark = mark + 1;",
        f"{TRAPS}:test_05_event_after_the_free_counts",
    ),
    Guard(
        "cache/block.c",
        "    const hipError_t error = stream_wait_for_device(block->device);",
        "    const hipError_t error = hipSuccess;",
        f"{TRAPS}:test_06_free_without_a_stream_waits_for_all",
    ),
    Guard(
        "cache/block.h",
        "stream && stream_is_live(stream) &&",
        "stream &&",
        f"{TRAPS}:test_06_free_on_a_destroyed_stream_waits_for_all",
    ),
    Guard(
        "cache/stream.h",
        "        store_release(&stream_others, OTHERS_BUSY);",
        "        (void)0;",
        f"{TRAPS}:test_06_null_stream_work_is_waited_for",
    ),
    Guard(
        "cache/block.c",
        "!cas_acq_rel(&block->state, &live, BLOCK_CACHED)",
        "(block->state = BLOCK_CACHED, live != live)",
        f"{MEMORY}:test_freed_twice",
    ),
    Guard(
        "calls/memory.c",
        "if (around && around->state == BLOCK_CACHED && device_kept(around->device)) {",
        "if (false) {",
        f"{MEMORY}:test_address_inside_a_cached_block",
    ),
    Guard(
        "cache/block_pool.c",
        "pool->owner != self && pool->device == device",
        "pool->owner != self && device >= 0",
        f"{MEMORY}:test_devices_have_pools_of_their_own",
    ),
    Guard(
        "cache/block_pool.c",
        "if (!pool || pool->device != stream->device)",
        "if (false)",
        f"{MEMORY}:test_a_stream_comes_back_on_another_device",
    ),
    Guard(
        "calls/memory.c",
        "late_host_shared && !handle",
        "late_host_shared",
        f"{MEMORY}:test_shared_flag_counts_without_a_stream_only",
    ),
    Guard(
        "hip/hip.h",
        "UNLIKELY(answer_ == hipErrorOutOfMemory) && hooks.make_room()",
        "false",
        f"{MEMORY}:test_out_of_memory_gives_back_all_that_is_cached",
    ),
    Guard(
        "cache/staging.c",
        "if (bytes <= STAGING_UP - staging->used)",
        "if (staging->used + bytes > STAGING_UP)\n        staging->used = 0;\n    if (true)",
        f"{COPIES}:test_ring_is_not_overrun",
        alone=True,
    ),
    Guard(
        "calls/copy.c",
        ") || is_quiet(stream);",
        ") || (stream && is_quiet != NULL);",
        f"{COPIES}:test_source_that_a_kernel_may_write_is_not_read_early",
    ),
    Guard(
        "calls/copy.c",
        "    if (!hip_calls_pageable(address) ||",
        "    (void)hip_calls_pageable;\n    if (false &&",
        f"{COPIES}:test_where_others_call_hip_it_is_asked",
    ),
    Guard(
        "cache/staging.c",
        "        error = stream_wait(pieces->stream);",
        "        error = hipSuccess;",
        f"{COPIES}:test_copy_waits_for_what_is_before_it",
    ),
    Guard(
        "cache/stream.h",
        "    return exclusive_hip() && stream_is_idle(stream)",
        "    return stream_is_idle(stream)",
        f"{SYNC}:test_where_others_call_hip_every_synchronise_asks",
    ),
    Guard(
        "cache/stream.h",
        "stream_is_idle(stream) && stream_state(stream) == STREAM_LIVE;",
        "stream_is_idle(stream);",
        f"{SYNC}:test_a_stream_of_the_programs_own_is_always_asked",
    ),
    Guard(
        "calls/stream.h",
        "        lazy_settle(*stream);",
        "        (void)0;",
        f"{SYNC}:test_another_streams_work_waits_first",
    ),
    Guard(
        "calls/stream.c",
        "            lazy_end();",
        "            (void)0;",
        f"{SYNC}:test_two_streams_at_once_stay_at_once",
    ),
    Guard(
        "cache/lazy.c",
        "load_relaxed(&visible) ||",
        "",
        f"{SYNC}:test_registered_memory_is_observable",
    ),
    Guard(
        "cache/lazy.c",
        "        silent = !memmem(image->bytes, image->size, words[i], strlen(words[i]));",
        "        (void)words;",
        f"{SYNC}:test_kernels_that_print_are_observable",
    ),
    Guard(
        "cache/lazy.c",
        "           device_reaches_pageable(stream->device);",
        "           false;",
        f"{SYNC}:test_lazy_needs_that_kernels_cannot_reach_the_host",
    ),
    Guard(
        "image/view.c",
        "errno != EFAULT",
        "true",
        f"{IMAGES}:test_memory_that_may_not_be_read",
    ),
    Guard(
        "image/image_elf.c",
        "    if (!has_segments || !view_holds(view, 0, size)) {",
        "    if (!has_segments) {",
        f"{IMAGES}:test_sections_that_lie_about_their_size",
    ),
    Guard(
        "image/image_bundle.c",
        "    if (size == 0)",
        "    if (false)",
        f"{IMAGES}:test_offset_of_an_empty_bundle_entry",
    ),
    Guard(
        "image/image_bundle.c",
        "entry.header_size < sizeof entry || !view_holds(view, from, entry.size)",
        "entry.header_size < sizeof entry",
        f"{IMAGES}:test_header_size_of_a_fatbin_entry",
    ),
    Guard(
        "base/counters.c",
        "MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0)",
        "MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)",
        f"{COUNTED}:test_a_child_of_fork_leaves_its_parents_file_alone",
    ),
    Guard(
        "base/output.c",
        "errno != EEXIST || !is_taken(output->path)",
        "errno == EEXIST",
        f"{COUNTED}:test_a_living_process_keeps_its_file",
    ),
    Guard(
        "base/output.c",
        "output->direct || !is_within_limit(size)",
        "output->direct",
        f"{COUNTED}:test_a_limit_of_file_sizes_is_kept_to",
    ),
    Guard(
        "lifecycle.c",
        "options.trace_gpu_on && ",
        "",
        f"{GPU_TIMES}:test_nothing_is_timed_that_was_not_asked_for",
    ),
    Guard(
        "gpu_times.c",
        " || !is_timeable(stream)",
        "",
        f"{GPU_TIMES}:test_no_event_goes_to_a_stream_that_hip_has_destroyed",
        also=("static bool is_timeable", "__attribute__((unused)) static bool is_timeable"),
    ),
    Guard(
        "gpu_times.c",
        "    if (error == hipErrorNotReady)\n        return false;\n",
        "",
        f"{GPU_TIMES}:test_a_full_ring_is_not_waited_for",
    ),
    Guard(
        "gpu_times.c",
        "    next = (next + 1) % RING;\n    if (!is_read(work) ||",
        "    if (!is_read(work) ||",
        f"{GPU_TIMES}:test_a_slow_stream_does_not_keep_out_others",
        also=(
            "    work->state = BEGUN;\n",
            "    work->state = BEGUN;\n    next = (next + 1) % RING;\n",
        ),
    ),
    Guard(
        "gpu_times.c",
        "work->device != device",
        "false",
        f"{GPU_TIMES}:test_events_are_of_the_device_that_they_are_recorded_on",
    ),
    Guard(
        "gpu_times.c",
        "(void)device_kept(device);",
        "",
        f"{GPU_TIMES}:test_a_device_that_was_reset_has_none_of_the_events",
    ),
    Guard(
        "lifecycle.c",
        "    gpu_times_forget();\n",
        "",
        f"{GPU_TIMES}:test_a_device_that_was_reset_has_none_of_the_events",
    ),
    Guard(
        "gpu_times.c",
        "runtime_forked || ",
        "",
        f"{GPU_TIMES}:test_a_child_of_fork_times_nothing",
    ),
    Guard(
        "gpu_times.c",
        "error == hipSuccess && work->end && ",
        "work->end && ",
        f"{GPU_TIMES}:test_the_error_of_a_launch_stays",
    ),
    Guard(
        "gpu_times.c",
        "        device_forget_error(error);\n",
        "        (void)device_forget_error;\n",
        f"{GPU_TIMES}:test_an_error_of_an_event_is_not_the_programs",
    ),
    Guard(
        "gpu_times.c",
        "        device_forget_error(error);\n",
        "        (void)device_forget_error;\n",
        f"{GPU_TIMES}:test_no_reference_is_no_error_of_the_programs",
    ),
    Guard(
        "gpu_times.c",
        "hip_untimed.name != hip_missing.name",
        "true",
        f"{GPU_TIMES}:test_no_event_is_put_around_what_hip_lacks",
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
        "recorder.c",
        "ranges_find(call->from, call->bytes) == RANGE_NONE &&",
        "",
        f"{TRACE}:test_a_copy_that_needs_no_pinned_memory_says_nothing_of_it",
    ),
    Guard(
        "recorder.c",
        "way == COPY_FROM_DEVICE && ranges_find(call->to, call->bytes) == RANGE_NONE",
        "way == COPY_FROM_DEVICE",
        f"{TRACE}:test_a_copy_that_needs_no_pinned_memory_says_nothing_of_it",
    ),
    Guard(
        "recorder.c",
        "!(cuda_present() && call->bytes <= STAGING_CUDA_TAKES)",
        "true",
        f"{TRACE}:test_a_small_copy_is_nvidias_drivers",
    ),
    Guard(
        "recorder.c",
        "!copied.to || ",
        "",
        f"{TRACE}:test_a_copy_that_was_refused_went_no_way",
    ),
    Guard(
        "recorder.c",
        "    copied.to = copied.from = NULL;\n",
        "",
        f"{TRACE}:test_a_copy_that_was_refused_went_no_way",
    ),
    Guard(
        "recorder.c",
        "    set_meaning(&modules, loaded.module, row < MODULES ? row + 1 : 0);\n",
        "",
        f"{LAZY_LOAD}:test_the_image_is_counted_by_both_its_handles",
    ),
    Guard(
        "calls/module.c",
        "    stats_bypass_ends(CACHE_MODULES);\n",
        "",
        f"{LAZY_LOAD}:test_the_image_is_counted_by_both_its_handles",
    ),
    Guard(
        "recorder.c",
        "(void)stats_take_decision();",
        "",
        f"{COUNTED}:test_a_miss_outside_of_the_abi_is_no_calls",
    ),
    Guard(
        "recorder.c",
        "if (!runtime_counting())\n        return;",
        "",
        f"{COUNTED}:test_nothing_is_counted_that_was_not_asked_for",
    ),
    Guard(
        "base/options.c",
        "secure_getenv(variable)",
        "getenv(variable)",
        f"{OPTIONS}:test_a_set_uid_program_takes_no_code_and_no_paths",
    ),
    Guard(
        "hip/report.c",
        "(NOTHING_RUNS | advice->follows)",
        "NOTHING_RUNS",
        f"{ADVICE}:test_one_refused_image_is_one_advice",
    ),
    Guard(
        "hip/report.c",
        "(error == hipErrorInvalidDevice && hip_no_device)",
        "false",
        f"{ADVICE}:test_no_gpu_is_said_whatever_comes_first",
    ),
    Guard(
        "image/metadata.c",
        "release > 0 && release < HIP_5_3 && ",
        "(void)release, ",
        f"{ADVICE}:test_later_hip_gets_the_image_as_it_is",
    ),
    Guard(
        "calls/advice.c",
        "kernel.block_limit && threads > kernel.block_limit",
        "false",
        f"{ADVICE}:test_block_that_no_kernel_can_have",
    ),
    Guard(
        "calls/copy.c",
        ") || is_quiet(stream);",
        ") || (stream && is_quiet != NULL);",
        f"{KNOWN}:test_01_a_modules_global_is_not_host_memory",
    ),
    Guard(
        "cache/stream_pool.c",
        "    const hipError_t error = stream_ask(stream);\n    if (LIKELY(error == hipSuccess))",
        "    const hipError_t error = hipSuccess;\n    if (LIKELY(error == hipSuccess))",
        f"{KNOWN}:test_02_a_stream_that_others_left_busy_is_not_handed_out",
    ),
    Guard(
        "calls/launch.c",
        "    if (error == hipErrorOutOfMemory && hooks.make_room())",
        "    if (false)",
        f"{LIMITS}:test_04_a_launch",
    ),
    Guard(
        "cache/stream_pool.c",
        "queued > cache_limits.streams ?",
        "false ?",
        f"{LIMITS}:test_05_streams_that_nobody_holds_are_bounded",
    ),
    Guard(
        "cache/stream_pool.c",
        "QUERIES_PER_CREATE = 2",
        "QUERIES_PER_CREATE = 0",
        f"{LIMITS}:test_05_an_error_that_is_pending_changes_nothing",
    ),
    Guard(
        "calls/stream.c",
        "!exclusive_hip() && !is_ours(handle)",
        "false",
        f"{KNOWN}:test_06_a_stream_of_another_kind_at_an_address_of_ours",
    ),
    Guard(
        "calls/stream.c",
        "!is_simple(stream, handle) || !is_ours(handle)",
        "!is_simple(stream, handle)",
        f"{KNOWN}:test_06_a_stream_of_another_kind_at_an_address_of_ours",
    ),
    Guard(
        "cache/stream.c",
        "error = functions->StreamGetDevice(handle, &device);",
        "device = 0;",
        f"{KNOWN}:test_06_a_stream_that_the_program_destroyed_by_hip",
    ),
    Guard(
        "calls/stream.c",
        "stream_known(handle) && (exclusive_hip() || stream_ask_flags(handle, &flags))",
        "((void)flags, stream_known(handle))",
        f"{KNOWN}:test_06_an_event_of_the_programs_own_at_an_address_of_our_stream",
    ),
    Guard(
        "calls/stream.h",
        "    if (stream_state(*stream) != STREAM_GONE)",
        "    if (true)",
        f"{KNOWN}:test_06_a_stream_of_the_programs_own_at_an_address_of_ours",
    ),
    Guard(
        "calls/function.c",
        "    if (state == MODULE_GONE || !name ||",
        "    if (!module || !name ||",
        f"{KNOWN}:test_06_a_module_of_the_programs_own_at_an_address_of_ours",
        also=("    if (state == MODULE_FREE) {", "    if (state != MODULE_LIVE) {"),
    ),
    Guard(
        "hip/device.c",
        "LIKELY(!memory || (device_memory_number(memory, &number) && number == before))",
        "LIKELY(number == 0 || before != 0)",
        f"{KNOWN}:test_07_reset",
    ),
    Guard(
        "cache/evict.c",
        "bytes > (quiet ? keep : 2 * keep)",
        "quiet && bytes > keep",
        f"{LIMITS}:test_08_one_leaked_stream_does_not_stop_eviction",
    ),
    Guard(
        "cache/staging.c",
        "    return !owner || !staging->used || stream_has_passed(owner, staging->mark);",
        "    return owner || !owner;",
        f"{LIMITS}:test_09_pinned_memory_in_use_is_not_taken",
    ),
    Guard(
        "cache/block.c",
        "!(exclusive_hip() || block_confirm(block))",
        "false",
        f"{KNOWN}:test_11_a_block_whose_address_came_back_smaller",
    ),
    Guard(
        "calls/event.c",
        "    return error == hipSuccess;\n}",
        "    return true;\n}",
        f"{TRAPS}:test_08_event_that_is_not_over_is_not_handed_out",
    ),
    Guard(
        "calls/stream.c",
        "stream_pool_has_room() &&\n           stream_state(stream) == STREAM_LIVE;",
        "stream_pool_has_room();",
        f"{SYNC}:test_a_second_destroy_is_said",
    ),
    Guard(
        "calls/stream.c",
        "!load_relaxed(&stream->borrowers) && ",
        "",
        f"{KNOWN}:test_17_a_stream_of_ours_that_is_lent",
        alone=True,
    ),
    Guard(
        "cache/stream.h",
        "!stream || stream_has_kernels(stream) ||",
        "!stream ||",
        f"{COPIES}:test_source_that_a_kernel_may_write_is_not_read_early",
    ),
    Guard(
        "calls/stream.c",
        "    if (load_relaxed(&stream->borrowers))",
        "    if (false)",
        f"{KNOWN}:test_17_a_stream_of_ours_that_is_lent",
    ),
    Guard(
        "cache/evict.c",
        "    if (++false_evictions < FALSE_EVICTIONS)",
        "    if (true)",
        f"{LIMITS}:test_18_a_limit_that_costs_loads_gives_way",
    ),
    Guard(
        "hip/refusal.c",
        "answer = hip.StreamQuery(stream);",
        "(void)stream;",
        f"{LAST_ERROR}:test_a_stream_that_was_destroyed",
    ),
    Guard(
        "hip/refusal.c",
        "hip_version < HIP_7",
        "true",
        f"{LAST_ERROR}:test_a_stream_that_was_destroyed_from_hip_7_on",
    ),
    Guard(
        "calls/stream.c",
        "        (void)refusal_of_stream(); /* up to",
        "        (void)0; /* up to",
        f"{LAST_ERROR}:test_a_stream_that_was_destroyed_and_is_waited_for",
    ),
    Guard(
        "hip/refusal.c",
        "or_known(hip.EventSynchronize(NULL), known)",
        "known",
        f"{LAST_ERROR}:test_an_event_that_was_destroyed",
    ),
    Guard(
        "hip/refusal.c",
        "or_known(hip.ModuleUnload((hipModule_t)(void *)unknown), known)",
        "known",
        f"{LAST_ERROR}:test_a_module_that_was_unloaded",
    ),
    Guard(
        "hip/refusal.c",
        "or_known(hip.Free(unknown), known)",
        "known",
        f"{LAST_ERROR}:test_a_block_that_was_freed",
    ),
    Guard(
        "hip/refusal.c",
        "or_known(hip.ModuleLoadData(&module, data ? unknown : NULL), known)",
        "known",
        f"{LAST_ERROR}:test_an_image_that_is_cut",
    ),
    Guard(
        "hip/refusal.c",
        "data ? unknown : NULL",
        "unknown",
        f"{LAST_ERROR}:test_no_image_at_all",
    ),
    Guard(
        "image/image_describe.c",
        "enum { LOOK = 24,",
        "enum { LOOK = 8,",
        f"{LAST_ERROR}:test_an_image_of_a_few_bytes",
    ),
    Guard(
        "image/image_elf.c",
        "(header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_shnum == 0)",
        "false",
        f"{LAST_ERROR}:test_an_elf_of_32_bits",
    ),
    Guard(
        "calls/stream.c",
        "    end_past(handle);\n",
        "",
        f"{MEMORY}:test_a_stream_comes_back_that_hip_destroyed",
    ),
    Guard(
        "cache/stream_pool.c",
        "store_release(&stream->awaited, false)",
        "(void)0",
        f"{MEMORY}:test_a_stream_comes_back_on_another_device",
    ),
    Guard(
        "calls/module.c",
        "        !mapped_for_good(load->data, load->image.size))",
        "        false)",
        f"{LAZY_LOAD}:test_what_may_change_is_loaded_at_once",
    ),
    Guard(
        "calls/module.c",
        "    if (kind == IMAGE_PTX ||",
        "    if (",
        "tests.cuhip.test_cuda:test_ptx_is_compiled_at_once_at_its_level",
    ),
    Guard(
        "cache/deferred.c",
        "handle_find(&images, image) ? NULL : enter(image, device)",
        "enter(image, device)",
        f"{LAZY_LOAD}:test_a_loop_of_loads_has_hip_load_once",
    ),
    Guard(
        "calls/module.c",
        "hip.SetDevice(deferred->device)",
        "hipSuccess",
        f"{LAZY_LOAD}:test_it_is_loaded_on_the_device_of_its_load",
    ),
    Guard(
        "calls/module.c",
        "!deferred_set_module(deferred, module)",
        "!deferred_set_module(deferred, module) && false",
        f"{LAZY_LOAD}:test_threads_that_ask_at_once_get_one_module",
    ),
    Guard(
        "calls/function.c",
        "deferred_state(deferred) == DEFERRED_OVER",
        "false",
        f"{LAZY_LOAD}:test_use_after_unload_is_said",
    ),
]
