"""Guards of csrc/runtime/hip: knowledge of a device and of mapped memory, and messages."""

from __future__ import annotations

from tests.runtime.guards.guard import (
    ADVICE,
    CONSTANTS,
    LAST_ERROR,
    LOCAL_RANK,
    TRAPS,
    Guard,
)

HIP = [
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
        "hip/device.c",
        "        (void)hip.GetLastError();",
        "        (void)0;",
        f"{TRAPS}:test_12_an_eviction_leaves_no_error",
    ),
    Guard(
        "hip/device.c",
        "if (error != hipErrorNotReady || hip_version < HIP_7)",
        "if (true)",
        f"{TRAPS}:test_12_a_pending_error_survives",
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
        f"{CONSTANTS}:test_constants_at_the_address_of_a_closed_library_are_compared",
    ),
    Guard(
        "hip/mapped.c",
        "!promises.text_relocations",
        "true",
        f"{CONSTANTS}:test_constants_that_the_loader_relocated_are_compared",
    ),
    Guard(
        "hip/report.c",
        "(NOTHING_RUNS | advice->follows)",
        "NOTHING_RUNS",
        f"{ADVICE}:test_one_refused_image_gives_one_advice",
    ),
    Guard(
        "hip/report.c",
        "(error == hipErrorInvalidDevice && hip_no_device)",
        "false",
        f"{ADVICE}:test_a_missing_gpu_is_named_whatever_call_comes_first",
    ),
    Guard(
        "hip/refusal.c",
        "answer = hip.StreamQuery(stream);",
        "(void)stream;",
        f"{LAST_ERROR}:test_a_memset_on_a_destroyed_stream_leaves_the_error_of_stock",
    ),
    Guard(
        "hip/refusal.c",
        "hip_version < HIP_7",
        "true",
        f"{LAST_ERROR}:test_a_memset_on_a_destroyed_stream_leaves_the_error_of_hip_7",
    ),
    Guard(
        "hip/refusal.c",
        "cuda_present() ? known : hip.EventSynchronize(NULL)",
        "known",
        f"{LAST_ERROR}:test_a_destroyed_event_leaves_the_error_of_stock",
    ),
    Guard(
        "hip/refusal.c",
        "cuda_present() ? known : hip.ModuleUnload((hipModule_t)(void *)unknown)",
        "known",
        f"{LAST_ERROR}:test_an_unloaded_module_leaves_the_error_of_stock",
    ),
    Guard(
        "hip/refusal.c",
        "cuda_present() ? known : hip.Free(unknown)",
        "known",
        f"{LAST_ERROR}:test_a_freed_block_leaves_the_error_of_stock",
    ),
    Guard(
        "hip/refusal.c",
        "asked ? hip.ModuleLoadData(&module, data ? unknown : NULL) : known",
        "known",
        f"{LAST_ERROR}:test_a_truncated_image_leaves_the_error_of_stock",
    ),
    Guard(
        "hip/refusal.c",
        "data ? unknown : NULL",
        "unknown",
        f"{LAST_ERROR}:test_a_null_image_leaves_the_error_of_stock",
    ),
]
