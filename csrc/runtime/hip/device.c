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
    .text = "MGPU_RT_DEVICE asks for device %d; there are %d, counted from 0"};
static struct advice shared_devices = {
    .text = "more ranks than devices: local rank %d uses device %d of %d, as ranks beyond the "
            "number of devices share them"};

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

/* ---- has somebody reset the device? ----
 *
 * hipDeviceReset takes the streams and the memory of the calling thread's device, and HIP hands
 * their addresses out anew: a handle that is there again proves nothing. What proves it is an
 * allocation of the runtime's own in the memory of that device, with the number that HIP gives to
 * each: pinned and managed memory outlives the reset of one of several devices in 5.2.3, 5.7.1,
 * 6.4.3 and 7.2.4. By a function of HIP's that nothing else here calls, so that the counts of
 * hipMalloc are the program's. (A reset of NVIDIA's devices ends LLVM's own runtime as well.) */

static struct watch {
    bool claimed; /* a thread has set it up, or does so just now */
    void *memory;
    uint64_t number;
} watches[DEVICES];

static bool is_watching(int device) {
    return device < DEVICES && !exclusive_hip() && !cuda_present() &&
           load_acquire(&watches[device].memory);
}

bool device_memory_number(void *memory, uint64_t *number) {
    const hipError_t error = hip.PointerGetAttribute(number, hipPointerAttributeBufferId, memory);
    if (error != hipSuccess)
        device_forget_error(error);
    return error == hipSuccess;
}

/* False without memory: then there is little to be cached, too. */
static bool set_up_watch(struct watch *watch) {
    void *memory = NULL;
    uint64_t number = 0;
    const hipError_t error = hip.ExtMallocWithFlags(&memory, 64, hipDeviceMallocDefault);
    if (error != hipSuccess) {
        device_forget_error(error);
        return false;
    }
    if (!device_memory_number(memory, &number))
        return false;
    store_relaxed(&watch->number, number);
    store_release(&watch->memory, memory);
    return true;
}

void device_watch(int device) {
    if (device >= DEVICES || exclusive_hip() || cuda_present())
        return;
    struct watch *watch = &watches[device];
    if (load_relaxed(&watch->claimed) || exchange_acq_rel(&watch->claimed, true))
        return;
    if (!set_up_watch(watch))
        store_release(&watch->claimed, false);
}

bool device_ask_kept(int device) {
    uint64_t number = 0;
    if (!is_watching(device))
        return true;
    void *memory = load_acquire(&watches[device].memory);
    const uint64_t before = load_relaxed(&watches[device].number);
    if (LIKELY(!memory || (device_memory_number(memory, &number) && number == before)))
        return true;
    hooks.forget(device);
    return false;
}

void device_ask_all(void) {
    for (int device = 0; device < DEVICES; device++)
        (void)device_kept(device);
}

void device_forget_watch(int which) {
    for (int device = 0; device < DEVICES; device++)
        if (of_device(which, device)) {
            store_release(&watches[device].memory, NULL);
            store_release(&watches[device].claimed, false);
        }
}
