#include "hip/device.h"
#include "base/abi.h"
#include "base/atomics.h"
#include "base/likely.h"
#include "base/options.h"
#include "base/state.h"
#include "hip/hip.h"
#include "hip/report.h"

bool device_reaches_pageable(int device) {
    enum { UNKNOWN, NO, YES };
    static char answers[MOST_DEVICES];
    if (device >= MOST_DEVICES)
        return true;
    char answer = load_relaxed(&answers[device]);
    if (LIKELY(answer != UNKNOWN))
        return answer == YES;
    int value = 1;
    if (!device_answered(
            hip.DeviceGetAttribute(&value, hipDeviceAttributePageableMemoryAccess, device)))
        value = 1;
    answer = value ? YES : NO;
    store_relaxed(&answers[device], answer);
    return answer == YES;
}

/* HIP 7 and later keep the last error until it is read, and do not count "not ready" as one. */
void device_forget_error(hipError_t error) {
    if (error != hipErrorNotReady || hip_version < HIP_7)
        (void)hip.GetLastError();
}

/* ---- MGPU_RT_DEVICE ---- */

static struct advice no_such_device = {
    .text = "MGPU_RT_DEVICE names device %d; HIP has %d, counted from 0"};
static struct advice shared_devices = {
    .text = "this machine has more ranks than devices: local rank %d shares device %d of %d with "
            "another rank"};

static int count_devices(void) {
    int count = 0;
    return device_answered(hip.GetDeviceCount(&count)) ? count : 0;
}

static bool is_chosen(void) {
    int device = 0;
    return device_answered(hip.GetDevice(&device)) && device != 0;
}

/* Ranks beyond the devices share them. One rank of each machine says so: the first that has to. */
static int device_of_rank(int rank, int count) {
    if (count == 0)
        return rank;
    if (rank == count)
        report_once(&shared_devices, rank, rank % count, count);
    return rank % count;
}

void device_choose(void) {
    if (is_chosen())
        return;
    const int count = count_devices();
    const int device = options.device_by_rank ? device_of_rank(options.device_number, count)
                                              : options.device_number;
    REPORT("hipSetDevice(MGPU_RT_DEVICE)", hip.SetDevice(device), &no_such_device, device, count);
}

bool device_memory_number(void *memory, uint64_t *number) {
    return device_answered(hip.PointerGetAttribute(number, hipPointerAttributeBufferId, memory));
}
