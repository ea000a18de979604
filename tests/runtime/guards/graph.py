"""Guards of csrc/runtime/graph: what a graph uses is nobody else's."""

from __future__ import annotations

from tests.runtime.guards.guard import CAPTURE, FUNCTIONS, GRAPHS, Guard

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
        "        event->captured = capture_of_handle(stream).stream;",
        "        event->captured = stream_known(stream);",
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
    Guard(
        "graph/calls.c",
        "past_merge(&graph_building->host, handle ? &stream->past : &all);",
        "(void)all;",
        f"{GRAPHS}:test_a_wait_of_the_hosts_is_an_edge",
    ),
    Guard(
        "graph/calls.c",
        "past_merge(&stream->past, &event->past);",
        ";",
        f"{GRAPHS}:test_an_event_is_an_edge",
    ),
    Guard(
        "graph/calls.c",
        "past_merge(&graph_building->host, &event->past);",
        ";",
        f"{GRAPHS}:test_a_wait_for_an_event_of_the_hosts_is_an_edge",
    ),
    Guard(
        "graph/calls.c",
        "past_merge(&graph_building->host, &block->past);",
        ";",
        f"{GRAPHS}:test_memory_that_serves_again_is_an_edge",
    ),
    Guard(
        "graph/build.c",
        "if (!stream->handle)\n        past_merge",
        "if (false)\n        past_merge",
        f"{GRAPHS}:test_the_null_stream_is_in_order_with_all",
    ),
    Guard(
        "graph/calls.c",
        "!address || !block_give_graph(address)",
        "!address",
        f"{GRAPHS}:test_memory_of_a_graph_is_nobody_elses",
    ),
    Guard(
        "graph/graph.c",
        "if (known && graph->launched)",
        "if (false)",
        f"{GRAPHS}:test_a_graph_that_runs_is_waited_for_where_it_is_destroyed",
    ),
    Guard(
        "cache/modules.c",
        "        module->graphs++;",
        "        ;",
        f"{GRAPHS}:test_a_module_of_a_graph_stays_loaded",
    ),
    Guard(
        "calls/module.c",
        "const bool in_graph = module->graphs != 0;",
        "const bool in_graph = false;",
        f"{GRAPHS}:test_a_module_with_globals_of_a_graph_stays_loaded",
    ),
    Guard(
        "graph/calls.c",
        "if (!block || !block_keep(block_find(address), NULL))",
        "if (!block || (block_keep(block_find(address), NULL), false))",
        f"{GRAPHS}:test_a_second_free_ends_the_building",
    ),
    Guard(
        "graph/calls.c",
        "module_state(module) == MODULE_LIVE && !module->shared)",
        "false)",
        f"{GRAPHS}:test_a_module_with_globals_that_is_loaded_ends_the_building",
    ),
    Guard(
        "graph/calls.c",
        "threads < 1 || threads > 1024 ||",
        "",
        f"{GRAPHS}:test_a_launch_that_no_gpu_runs_ends_the_building",
    ),
    Guard(
        "graph/calls.c",
        "    if (!event)\n        graph_fail(",
        "    if (!event)\n        ;\n    else if (false)\n        graph_fail(",
        f"{GRAPHS}:test_an_event_of_before_ends_the_building",
    ),
    Guard(
        "graph/build.c",
        "return !cuda_present() && hip_version >= HIP_6_0;",
        "return false && HIP_6_0;",
        f"{GRAPHS}:test_where_hip_crashes_over_forks_a_graph_is_a_chain",
    ),
    Guard(
        "graph/function.c",
        "memcmp(state->arguments, arguments, state->bytes) == 0",
        "state->bytes != 0",
        f"{FUNCTIONS}:test_changed_arguments_are_built_anew",
    ),
    Guard(
        "graph/function.c",
        "state->wanted *= 2;",
        ";",
        f"{FUNCTIONS}:test_graphs_that_do_not_pay_become_rare",
    ),
    Guard(
        "graph/function.c",
        "if (graph_building || !options.caches",
        "if (!options.caches",
        f"{FUNCTIONS}:test_calls_within_a_graph_are_part_of_it",
    ),
    Guard(
        "graph/function.c",
        " || thread_is_alone()",
        " || true",
        f"{FUNCTIONS}:test_beside_other_threads_old_releases_run_plainly",
    ),
    Guard(
        "graph/function.c",
        " || capture_on_thread()",
        "",
        f"{FUNCTIONS}:test_in_a_capture_of_the_programs_it_runs_plainly",
    ),
    Guard(
        "graph/function.c",
        "if (graph_is_lost(state->graph))",
        "if (false)",
        f"{FUNCTIONS}:test_after_a_reset_it_is_built_anew",
    ),
    Guard(
        "graph/graph.c",
        "        graph->lost = true;",
        "        ;",
        f"{FUNCTIONS}:test_a_child_of_fork_replays_no_graph_of_its_parents",
    ),
    Guard(
        "graph/function.c",
        "    if (state->refused || ",
        "    if (",
        f"{FUNCTIONS}:test_a_function_that_cannot_be_in_a_graph_runs_plainly",
    ),
]
