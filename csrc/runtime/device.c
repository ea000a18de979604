/* mgpuSetDefaultDevice: the device is the calling thread's alone, as in HIP. */
#include "device.h"
#include "thread.h"

enum { DEVICES = 64 };

static struct advice no_such_device = {.text =
                                           "device %d was asked for; there are %d, counted from 0"};

void impl_mgpuSetDefaultDevice(int32_t device) {
    (void)thread_get();
    REPORT("hipSetDevice(device)", hip.SetDevice(device), &no_such_device, device,
           hip_device_count);
}

bool device_reaches_pageable(int device) {
    enum { UNKNOWN, NO, YES };
    static char answers[DEVICES];
    if (device >= DEVICES)
        return true;
    char answer = __atomic_load_n(&answers[device], __ATOMIC_RELAXED);
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
    __atomic_store_n(&answers[device], answer, __ATOMIC_RELAXED);
    return answer == YES;
}

/* HIP 7 and later keep the last error until it is read, and do not count "not ready" as one. */
static bool error_sticks(void) {
    enum { UNKNOWN, NO, YES };
    static char answer;
    char known = __atomic_load_n(&answer, __ATOMIC_RELAXED);
    if (LIKELY(known != UNKNOWN))
        return known == YES;
    int version = 0;
    known = hip.RuntimeGetVersion(&version) == hipSuccess && version >= 70000000 ? YES : NO;
    __atomic_store_n(&answer, known, __ATOMIC_RELAXED);
    return known == YES;
}

void device_forget_error(hipError_t error) {
    if (error != hipErrorNotReady || !error_sticks())
        (void)hip.GetLastError();
}
