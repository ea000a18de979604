"""Guards of csrc/runtime/hip: what is known of a device, of what is mapped, what is said."""

from __future__ import annotations

from tests.runtime.guards.guard import (
    ADVICE,
    CONSTANTS,
    KNOWN,
    LAST_ERROR,
    LOCAL_RANK,
    RESET,
    TRAPS,
    Guard,
)

HIP = [
    Guard(
        "cache/watch.c",
        "hip.ExtMallocWithFlags(&memory, 64, hipDeviceMallocDefault)",
        "hip.HostMalloc(&memory, 64, hipHostMallocDefault)",
        f"{RESET}:test_a_job_after_the_reset_of_its_device_gets_memory_anew",
    ),
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
        f"{TRAPS}:test_12_eviction_leaves_no_error",
    ),
    Guard(
        "hip/device.c",
        "if (error != hipErrorNotReady || hip_version < HIP_7)",
        "if (true)",
        f"{TRAPS}:test_12_pending_error_survives",
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
        "cache/watch.c",
        "return memory && (!device_memory_number(memory, &number) || number != before);",
        "return memory && number != 0 && before == 0;",
        f"{KNOWN}:test_07_reset",
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
]
