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
    if (hip.PeekAtLastError() != hipSuccess) /* a failure below would hide it */
        return true;
    int value = 1;
    if (hip.DeviceGetAttribute(&value, hipDeviceAttributePageableMemoryAccess, device) !=
        hipSuccess) {
        (void)hip.GetLastError();
        value = 1;
    }
    answer = value ? YES : NO;
    __atomic_store_n(&answers[device], answer, __ATOMIC_RELAXED);
    return answer == YES;
}
