"""Guards of csrc/runtime/graph: what a graph uses is nobody else's."""

from __future__ import annotations

from tests.runtime.guards.guard import CAPTURE, Guard

GRAPH = [
    Guard(
        "graph/capture.c",
        "if (!block || !block_keep(block, capture.stream))",
        "if (block || !block)",
        f"{CAPTURE}:test_a_block_freed_in_a_capture_is_nobody_elses",
    ),
    Guard(
        "cache/blocks.c",
        "!block_enter(address, size, device, BLOCK_GRAPH)",
        "!block_enter(address, size, device, BLOCK_LIVE)",
        f"{CAPTURE}:test_a_block_of_a_capture_that_is_freed_later_is_nobody_elses",
    ),
    Guard(
        "graph/capture.c",
        "if (!capture.stream || !block_serves(bytes, capture.stream->device))",
        "if (capture.stream || !capture.stream)",
        f"{CAPTURE}:test_a_capture_has_blocks_of_its_own",
    ),
    Guard(
        "cache/blocks.c",
        "block->graph == graph &&",
        "block->graph &&",
        f"{CAPTURE}:test_a_capture_uses_its_blocks_again",
    ),
    Guard(
        "graph/capture.c",
        "if (!capture_of_handle(handle).stream)",
        "if (handle)",
        f"{CAPTURE}:test_nothing_is_waited_for_in_a_capture",
    ),
    Guard(
        "graph/capture.c",
        "else if (status != hipStreamCaptureStatusNone)",
        "else",
        f"{CAPTURE}:test_after_a_capture_is_waited_again",
    ),
    Guard(
        "graph/capture.c",
        "!event || !event->captured || !capture_on(event->stream).stream",
        "!event || !capture_on(event->stream).stream",
        f"{CAPTURE}:test_an_event_of_before_is_waited_for_in_a_capture",
    ),
    Guard(
        "graph/capture.c",
        "if (!capture.stream) {\n        impl_mgpuMemcpy",
        "if (true) {\n        impl_mgpuMemcpy",
        f"{CAPTURE}:test_copies_are_captured_as_they_are",
    ),
    Guard(
        "graph/capture.c",
        "    module_hold(module);\n",
        "",
        f"{CAPTURE}:test_a_module_unloaded_in_a_capture_stays_loaded",
    ),
    Guard(
        "graph/answer.c",
        "options.caches && ",
        "",
        f"{CAPTURE}:test_off_is_stock_in_a_capture",
    ),
]
