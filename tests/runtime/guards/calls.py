"""Guards of csrc/runtime/calls: what each call of the ABI looks at first."""

from __future__ import annotations

from tests.runtime.guards.guard import (
    ADVICE,
    COPIES,
    KNOWN,
    LAST_ERROR,
    LAZY_LOAD,
    LIMITS,
    MEMORY,
    NO_MEMORY,
    SYNC,
    TRAPS,
    Guard,
)

CALLS = [
    Guard(
        "calls/memory.c",
        "error == hipErrorOutOfMemory ? &out_of_memory : NULL",
        "&out_of_memory",
        f"{MEMORY}:test_a_refusal_is_not_taken_for_a_lack_of_memory",
    ),
    Guard(
        "calls/event.c",
        "    report_once(&stream_served, (void *)handle);\n    return true;",
        "    report_once(&stream_served, (void *)handle);\n    return false;",
        f"{TRAPS}:test_09_a_stream_passed_to_event_synchronize_is_waited_for",
    ),
    Guard(
        "calls/function.c",
        "module ? &foreign_module : &null_module",
        "&foreign_module",
        f"{TRAPS}:test_11_null_module_is_explained_once",
    ),
    Guard(
        "calls/module.c",
        "    module_invalidate(module);\n",
        "",
        f"{NO_MEMORY}:test_a_module_without_memory_for_its_image_is_not_the_one_before",
    ),
    Guard(
        "calls/memory.c",
        "load_acquire(&around->state) == BLOCK_CACHED",
        "false",
        f"{MEMORY}:test_an_address_inside_a_cached_block_is_refused",
    ),
    Guard(
        "calls/memory.c",
        "    const bool shared = late_host_shared && !handle;\n    void *address = LIKELY(",
        "    const bool shared = late_host_shared;\n    void *address = LIKELY(",
        f"{MEMORY}:test_the_shared_flag_counts_without_a_stream_only",
    ),
    Guard(
        "calls/copy.c",
        ") || is_quiet(stream);",
        ") || (stream && is_quiet != NULL);",
        f"{COPIES}:test_a_source_that_a_kernel_may_write_is_not_read_early",
    ),
    Guard(
        "calls/copy.c",
        "    if (!hip_calls_pageable(address) ||",
        "    (void)hip_calls_pageable;\n    if (false &&",
        f"{COPIES}:test_hip_is_asked_about_memory_where_others_call_hip",
    ),
    Guard(
        "calls/stream.h",
        "        lazy_settle(*stream);",
        "        (void)0;",
        f"{SYNC}:test_work_on_another_stream_waits_for_a_deferred_wait",
    ),
    Guard(
        "calls/lazy_load.c",
        "        stats_hit(CACHE_MODULES);",
        "        (void)stats_hit;",
        f"{LAZY_LOAD}:test_a_deferred_load_is_a_hit_if_the_cache_has_the_image_by_then",
    ),
    Guard(
        "calls/advice.c",
        "kernel.block_limit && threads > kernel.block_limit",
        "false",
        f"{ADVICE}:test_a_block_that_no_kernel_can_have_is_explained",
    ),
    Guard(
        "calls/copy.c",
        ") || is_quiet(stream);",
        ") || (stream && is_quiet != NULL);",
        f"{KNOWN}:test_01_a_modules_global_is_not_host_memory",
    ),
    Guard(
        "calls/launch.c",
        "    if (error == hipErrorOutOfMemory && caches_make_room(error))",
        "    if (false)",
        f"{LIMITS}:test_04_a_launch_is_tried_again",
    ),
    Guard(
        "calls/stream.c",
        "!exclusive_hip() && !stream_is_ours(handle)",
        "false",
        f"{KNOWN}:test_06_a_stream_with_other_flags_at_our_address_is_not_ours",
    ),
    Guard(
        "calls/stream.c",
        "!stream_pool_keeps(own, handle) || !stream_is_ours(handle)",
        "!stream_pool_keeps(own, handle)",
        f"{KNOWN}:test_06_a_stream_with_other_flags_at_our_address_is_not_ours",
    ),
    Guard(
        "calls/stream.h",
        "    if (!stream_is_gone(*stream))",
        "    if (true)",
        f"{KNOWN}:test_06_a_foreign_stream_at_our_address_is_not_ours",
        also=("device)) && !stream_is_gone(stream)", "device))"),
        also_file="cache/streams.h",
    ),
    Guard(
        "calls/function.c",
        "    if (state == MODULE_GONE || !name)",
        "    if (!module || !name)",
        f"{KNOWN}:test_06_a_foreign_module_at_our_address_is_not_ours",
        also=("    if (state == MODULE_FREE) {", "    if (state != MODULE_LIVE) {"),
    ),
    Guard(
        "calls/stream.c",
        "else if (load_relaxed(&stream->borrowers))",
        "else if (false)",
        f"{KNOWN}:test_17_a_lowered_destroy_leaves_a_lent_stream_of_ours",
    ),
    Guard(
        "calls/stream.c",
        "        (void)refusal_of_stream(); /* up to",
        "        (void)0; /* up to",
        f"{LAST_ERROR}:test_a_wait_for_a_destroyed_stream_leaves_the_error_of_stock",
    ),
    Guard(
        "calls/lazy_load.c",
        "hip.SetDevice(deferred->device)",
        "hipSuccess",
        f"{LAZY_LOAD}:test_a_deferred_image_is_loaded_on_the_device_of_its_load",
    ),
    Guard(
        "calls/lazy_load.c",
        "!deferred_set_module(deferred, module)",
        "!deferred_set_module(deferred, module) && false",
        f"{LAZY_LOAD}:test_concurrent_first_requests_load_one_module",
    ),
    Guard(
        "calls/lazy_load.c",
        "deferred_state(deferred) == DEFERRED_OVER",
        "false",
        f"{LAZY_LOAD}:test_use_after_unload_is_reported",
    ),
]
