/* The functions for fast mode do almost no work. No function takes a lock or writes to a shared
 * cache line. */
#ifndef HIPSTUB_FAST_H
#define HIPSTUB_FAST_H

#include "calls.h"
#include "mode.h"

#include <stdatomic.h>
#include <stdlib.h>

/* Each thread allocates handles from its own range of 2^36 addresses, so all handles are unique.
 * The range is not mapped, and the stub never dereferences these handles. */
static _Atomic uintptr_t fast_ranges = 1;
static _Thread_local uintptr_t fast_next;

static inline uintptr_t fast_take(uintptr_t bytes) {
    if (__builtin_expect(fast_next == 0, 0))
        fast_next = atomic_fetch_add_explicit(&fast_ranges, 1, memory_order_relaxed) << 36;
    uintptr_t taken = fast_next;
    fast_next += bytes;
    return taken;
}

#define fast_handle(out) (*(out) = (void *)fast_take(64), hipSuccess)

static inline hipError_t fast_init(void) {
    return stub_devices > 0 ? hipSuccess : hipErrorInvalidDevice;
}

static inline hipError_t fast_device_count(int *count) {
    return emu_hipGetDeviceCount(count);
}
static inline hipError_t fast_get_device(int *device) {
    return emu_hipGetDevice(device);
}
static inline hipError_t fast_set_device(int device) {
    return emu_hipSetDevice(device);
}

static inline hipError_t fast_malloc(void **address, size_t bytes) {
    *address = bytes == 0 ? NULL : (void *)fast_take((bytes + 255) & ~(size_t)255);
    return hipSuccess;
}

/* Allocates real memory, because the host may write to pinned memory. */
static inline hipError_t fast_host_malloc(void **address, size_t bytes) {
    *address = bytes == 0 ? NULL : malloc(bytes);
    return *address != NULL || bytes == 0 ? hipSuccess : hipErrorOutOfMemory;
}

static inline hipError_t fast_host_free(void *address) {
    free(address);
    return hipSuccess;
}

static inline hipError_t fast_same_pointer(void **device, void *host) {
    *device = host;
    return hipSuccess;
}

static inline hipError_t fast_memory_info(size_t *available, size_t *total) {
    *available = *total = stub_memory;
    return hipSuccess;
}

/* Stores the address as the base of a block of unlimited size, because fast mode does not track
 * blocks. */
static inline hipError_t fast_address_range(void **base, size_t *bytes, void *address) {
    *base = address;
    *bytes = SIZE_MAX;
    return hipSuccess;
}

static inline hipError_t fast_elapsed(float *milliseconds) {
    *milliseconds = 0;
    return hipSuccess;
}

#endif
