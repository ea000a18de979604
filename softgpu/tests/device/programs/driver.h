/* Opens the driver library as ROCr does, without HIP. */
#ifndef DRIVER_H
#define DRIVER_H

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <hsakmt.h>

enum { HANG = 600 /* in seconds, like the default limit in tests/support/patience.py */ };

static HSAKMT_STATUS (*allocate)(HSAuint32, HSAuint64, HsaMemFlags, void **);
static HSAKMT_STATUS (*create_queue)(HSAuint32, HSA_QUEUE_TYPE, HSAuint32, HSA_QUEUE_PRIORITY,
                                     void *, HSAuint64, HsaEvent *, HsaQueueResource *);

static void check(int status, const char *what) {
    if (status == 0)
        return;
    printf("%s: %d\n", what, status);
    exit(1);
}

/* Opens the driver library and returns its handle. */
static void *open_driver(void) {
    HSAKMT_STATUS (*open_device)(void);
    void *driver = dlopen("libhsakmt.so.1", RTLD_NOW);
    check(!driver, "libhsakmt.so.1");
    *(void **)&open_device = dlsym(driver, "hsaKmtOpenKFD");
    *(void **)&allocate = dlsym(driver, "hsaKmtAllocMemory");
    *(void **)&create_queue = dlsym(driver, "hsaKmtCreateQueue");
    check(open_device(), "hsaKmtOpenKFD");
    return driver;
}

/* Allocates host memory from which the device may execute kernels. */
__attribute__((unused)) static void *memory(uint64_t bytes) {
    void *pages = NULL;
    HsaMemFlags flags = {.ui32 = {.HostAccess = 1, .ExecuteAccess = 1}};
    check(allocate(0, bytes, flags, &pages), "hsaKmtAllocMemory");
    return pages;
}

/* Opens a queue of the first device. */
__attribute__((unused)) static void open_queue(HSA_QUEUE_TYPE type, void *ring, uint64_t bytes,
                                               HsaQueueResource *queue) {
    enum { DEVICE = 1, PERCENT = 100 };
    check(create_queue(DEVICE, type, PERCENT, HSA_QUEUE_PRIORITY_NORMAL, ring, bytes, NULL, queue),
          "hsaKmtCreateQueue");
}

#endif
