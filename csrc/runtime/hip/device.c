#include "hip/device.h"
#include "base/atomics.h"
#include "base/likely.h"
#include "base/options.h"
#include "base/state.h"
#include "hip/cuda.h"
#include "hip/hip.h"
#include "hip/report.h"

enum { DEVICES = 64 };

bool device_reaches_pageable(int device) {
    enum { UNKNOWN, NO, YES };
    static char answers[DEVICES];
    if (device >= DEVICES)
        return true;
    char answer = load_relaxed(&answers[device]);
    if (LIKELY(answer != UNKNOWN))
        return answer == YES;
    int value = 1;
    const hipError_t error =
        hip.DeviceGetAttribute(&value, hipDeviceAttributePageableMemoryAccess, device);
    if (error != hipSuccess) {
        device_forget_error(error);
        value = 1;
    }
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
    const hipError_t error = hip.GetDeviceCount(&count);
    if (error != hipSuccess)
        device_forget_error(error);
    return error == hipSuccess ? count : 0;
}

static bool is_chosen(void) {
    int device = 0;
    const hipError_t error = hip.GetDevice(&device);
    if (error != hipSuccess)
        device_forget_error(error);
    return error == hipSuccess && device != 0;
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
    const hipError_t error = hip.PointerGetAttribute(number, hipPointerAttributeBufferId, memory);
    if (error != hipSuccess)
        device_forget_error(error);
    return error == hipSuccess;
}
