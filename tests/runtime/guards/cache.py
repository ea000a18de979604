"""Guards of csrc/runtime/cache: what may be kept, handed out again, and given back."""

from __future__ import annotations

from tests.runtime.guards.guard import (
    COPIES,
    FREED,
    KNOWN,
    LAZY_LOAD,
    LIMITS,
    MEMORY,
    RESET,
    SYNC,
    TRAPS,
    Guard,
)

CACHE = [
    Guard(
        "cache/blocks.c",
        "*error == hipErrorNotSupported",
        "false",
        f"{MEMORY}:test_without_managed_memory_shared_memory_is_that_of_stock",
    ),
    Guard(
        "cache/blocks.c",
        "        device_forget_error(*error);\n        return block_alloc",
        "        return block_alloc",
        f"{MEMORY}:test_without_managed_memory_no_error_is_left",
    ),
    Guard(
        "cache/blocks_pool.c",
        "return !stream || stream_has_passed(",
        "return true || stream_has_passed(",
        f"{TRAPS}:test_05_a_freed_block_waits_for_its_stream",
    ),
    Guard(
        "cache/blocks_pool.c",
        "take_idle(&shared_pools[device], size)",
        "block_take(&shared_pools[device], size)",
        f"{MEMORY}:test_shared_memory_waits_for_its_stream",
    ),
    Guard(
        "cache/blocks_pool.c",
        "    put(block, stream, &shared_pools[block->device]);",
        "    (void)block_put(block, stream);",
        f"{MEMORY}:test_shared_memory_serves_shared_memory_only",
    ),
    Guard(
        "cache/blocks_pool.c",
        "    if (block->shared)\n        return &shared_pools[block->device];",
        "    if (false)\n        return &shared_pools[block->device];",
        f"{MEMORY}:test_shared_memory_above_the_limit_is_given_back",
    ),
    Guard(
        "cache/blocks_table.c",
        "    if ((block->shared || block->waits_now) && block->state == BLOCK_CACHED)",
        "    if (false)",
        f"{MEMORY}:test_shared_memory_is_forgotten_at_a_reset",
    ),
    Guard(
        "cache/blocks.c",
        "!exclusive_hip() && !block_confirm_shared(block)",
        "false",
        f"{MEMORY}:test_smaller_shared_memory_at_the_same_address_is_another_block",
    ),
    Guard(
        "cache/blocks.c",
        "    (void)device_kept(device);\n    struct block *block = block_search_shared",
        "    struct block *block = block_search_shared",
        f"{RESET}:test_a_reset_is_noticed_before_anything_is_reused",
    ),
    Guard(
        "cache/blocks.c",
        "    (void)device_kept(device);\n    if (LIKELY(stream",
        "    if (LIKELY(stream",
        f"{RESET}:test_a_reset_is_noticed_before_anything_is_reused",
    ),
    Guard(
        "cache/blocks.c",
        "    const hipError_t error = stream_wait_for_device(device);",
        "    const hipError_t error = hipSuccess;",
        f"{TRAPS}:test_06_a_free_without_a_stream_waits_for_all",
    ),
    Guard(
        "cache/blocks.h",
        "stream && stream_is_live(stream) &&",
        "stream &&",
        f"{TRAPS}:test_06_a_free_on_a_destroyed_stream_waits_for_all",
    ),
    Guard(
        "cache/blocks.c",
        "!cas_acq_rel(&block->state, &live, BLOCK_CACHED)",
        "(block->state = BLOCK_CACHED, live != live)",
        f"{MEMORY}:test_memory_freed_twice_is_refused",
    ),
    Guard(
        "cache/blocks_pool.c",
        "pool->owner != self && pool->device == device",
        "pool->owner != self && device >= 0",
        f"{MEMORY}:test_devices_have_pools_of_their_own",
    ),
    Guard(
        "cache/blocks_pool.c",
        "if (!pool || pool->device != stream->device)",
        "if (false)",
        f"{MEMORY}:test_a_handle_that_comes_back_on_another_device_is_another_stream",
    ),
    Guard(
        "cache/staging.c",
        "if (bytes <= STAGING_UP - staging->used)",
        "if (staging->used + bytes > STAGING_UP)\n        staging->used = 0;\n    if (true)",
        f"{COPIES}:test_copies_never_overrun_the_ring",
        exclusive=True,
    ),
    Guard(
        "cache/staging.c",
        "        error = stream_wait(pieces->stream);",
        "        error = hipSuccess;",
        f"{COPIES}:test_a_copy_waits_for_earlier_work",
    ),
    Guard(
        "cache/lazy_sync.c",
        "load_relaxed(&visible) ||",
        "",
        f"{SYNC}:test_lazy_waits_where_memory_is_registered",
    ),
    Guard(
        "cache/lazy_sync.c",
        "        silent = !memmem(image->bytes, image->size, words[i], strlen(words[i]));",
        "        (void)words;",
        f"{SYNC}:test_lazy_waits_for_kernels_that_print",
    ),
    Guard(
        "cache/lazy_sync.c",
        "           device_reaches_pageable(stream->device);",
        "           false;",
        f"{SYNC}:test_lazy_waits_where_kernels_can_reach_the_host",
    ),
    Guard(
        "cache/staging.c",
        "    return !owner || !staging->used || stream_has_passed(owner, staging->mark);",
        "    return owner || !owner;",
        f"{LIMITS}:test_09_pinned_memory_in_use_is_not_taken",
    ),
    Guard(
        "cache/blocks.c",
        "!exclusive_hip() && !block_confirm(block)",
        "false",
        f"{KNOWN}:test_11_a_smaller_block_at_the_same_address_is_another_block",
    ),
    Guard(
        "cache/lazy_load.c",
        "!cas_acq_rel(&deferred->state, &unused, DEFERRED_HELD)",
        "(store_release(&deferred->state, DEFERRED_HELD), (void)unused, false)",
        f"{LAZY_LOAD}:test_a_loop_of_loads_has_hip_load_once",
    ),
    # Events: each transition of cache/types.h.
    Guard(
        "cache/blocks_table.c",
        "if (of_device(device, block->device) && !block->outlives)",
        "if (!block->outlives)",
        f"{RESET}:test_a_reset_of_one_device_keeps_the_others_cache",
    ),
    Guard(
        "cache/blocks_table.c",
        "return block->shared && block->state != BLOCK_GONE && block_confirm_shared(block);",
        "return false;",
        f"{RESET}:test_jobs_that_each_reset_do_not_pile_up_memory",
    ),
    Guard(
        "cache/staging.c",
        "    if (staging->device != device)\n        destroy_events(staging);",
        "",
        f"{RESET}:test_large_copies_of_several_devices_share_pinned_memory",
    ),
    # Modules: each transition of cache/types.h.
    Guard(
        "cache/blocks.c",
        "    if (UNLIKELY(error != hipSuccess)) { /* nothing says that it is idle */",
        "    if (false) {",
        f"{FREED}:test_a_block_that_hip_cannot_wait_for_is_not_kept",
    ),
    Guard(
        "cache/blocks_waiting.c",
        "    return block->wait_count ? SOME_AT_WORK : NONE_AT_WORK;",
        "    return NONE_AT_WORK;",
        f"{FREED}:test_a_chain_of_early_frees_computes_what_stock_computes",
    ),
    Guard(
        "cache/blocks_waiting.c",
        "(struct wait){stream, stream_next_mark(stream)}",
        "(struct wait){stream, stream_next_mark(stream) - 1}",
        f"{FREED}:test_a_synchronise_before_the_free_is_not_enough",
    ),
    Guard(
        "cache/blocks_waiting.c",
        "i < block->wait_count; i++",
        "i < block->wait_count && i < 1; i++",
        f"{FREED}:test_a_block_waits_for_every_stream_at_work",
    ),
    Guard(
        "cache/blocks_waiting.c",
        "    if (block->stream && !is_past(block->stream, block->mark, stream))",
        "    if (false)",
        f"{FREED}:test_a_third_stream_waits_for_both_others",
    ),
    Guard(
        "cache/blocks_waiting.c",
        "            load_relaxed(&other->device) != block->device)",
        "            false)",
        f"{FREED}:test_a_stream_of_another_device_is_not_waited_for",
    ),
    Guard(
        "cache/blocks_waiting.c",
        "!block && holder && stream_query_unheld(holder)",
        "!block && holder && false",
        f"{FREED}:test_a_stream_that_was_destroyed_at_work_is_waited_for",
    ),
    Guard(
        "cache/blocks_waiting.c",
        "    return load_relaxed(&waiting[device].count) > WAITING_MOST;",
        "    return false;",
        f"{FREED}:test_beyond_256_blocks_a_free_waits_as_stocks",
    ),
    Guard(
        "cache/blocks.c",
        "    store_relaxed(&freed[device], give_oldest_back(device, limit - limit / 8));",
        "    (void)give_oldest_back;",
        f"{FREED}:test_freed_blocks_leave_room_for_memory_of_the_program",
    ),
    Guard(
        "cache/blocks.c",
        "        store_relaxed(&freed[device], limit); /* not counted so far */",
        "        (void)0;",
        f"{FREED}:test_frees_before_the_bound_was_reached_count",
    ),
    Guard(
        "cache/blocks.c",
        "    fetch_or_relaxed(&care_of_frees, CARE_OVER_LIMIT);",
        "    (void)give_oldest_back(device, limit / 8);\n"
        "    fetch_or_relaxed(&care_of_frees, CARE_OVER_LIMIT);",
        f"{FREED}:test_an_allocation_frees_no_block",
    ),
    Guard(
        "cache/blocks.c",
        "    return !total || size <= total;",
        "    return true;",
        f"{FREED}:test_an_impossible_allocation_empties_no_cache",
    ),
    Guard(
        "cache/blocks.c",
        "fits_device(size, device) && caches_make_room(*error)",
        "false",
        f"{MEMORY}:test_a_lack_of_memory_gives_back_all_that_is_cached",
    ),
]
