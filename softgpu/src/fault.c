/* Reports a fault that stopped a kernel.
 *
 * Like a GPU, the device can report a fault to ROCr in two ways. After the memory event, ROCr
 * prints its "Memory access fault by GPU" line and aborts. After the queue's error signal, HIP
 * names the error and aborts (HIP 5, 6) or returns the error from then on (HIP 7). This file prints
 * the whole message first, because neither ROCr's memory event nor the queue's error signal can
 * carry text. */
#include "check/hooks.h"
#include "hsa_signal.h"
#include "thunk.h"

#include <stdio.h>
#include <stdlib.h>

/* The bits that the command processor sets in the queue's error signal. */
static const int64_t error_bits[] = {
    [SOFTGPU_FAULT_EXCEPTION] = INT64_C(0x80000000),
    [SOFTGPU_FAULT_ILLEGAL_INSTRUCTION] = INT64_C(0x40000000),
    [SOFTGPU_FAULT_MEMORY] = INT64_C(0x20000000),
    [SOFTGPU_FAULT_PACKET] = INT64_C(0x20),
    [SOFTGPU_FAULT_DIMENSIONS] = INT64_C(0x2),
    [SOFTGPU_FAULT_GROUP_MEMORY] = INT64_C(0x4),
    [SOFTGPU_FAULT_CODE] = INT64_C(0x8),
    [SOFTGPU_FAULT_GROUP_SIZE] = INT64_C(0x40),
    [SOFTGPU_FAULT_REGISTERS] = INT64_C(0x80),
    [SOFTGPU_FAULT_VENDOR_PACKET] = INT64_C(0x100),
};

/* abort() would drop the kernels' printf output, which is buffered in HIP's stdout and often
 * explains the fault. flush_output() does not wait for stdout's lock, because the thread that owns
 * the lock may never release it. */
static void flush_output(void) {
    if (ftrylockfile(stdout) != 0)
        return;
    fflush_unlocked(stdout);
    funlockfile(stdout);
}

void softgpu_report_fault(uint32_t node, uint64_t queue_va, const struct softgpu_fault *fault) {
    flush_output();
    CHECK_STOPPED(fault->text);
    softgpu_say("%s", fault->text);
    bool told =
        fault->kind == SOFTGPU_FAULT_MEMORY && softgpu_raise_memory_fault(node, fault->address);
    const struct softgpu_amd_queue *queue = (const void *)(uintptr_t)queue_va;
    if (!told && !queue)
        abort();
    if (!told)
        softgpu_signal_store(queue->queue_inactive_signal, error_bits[fault->kind]);
}
