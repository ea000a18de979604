/* Queries HIP about itself and its devices, and measures the duration of each query that the
 * runtime makes. */
#include "hip.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- devices ---- */

/* Returns a target such as "gfx90a:sramecc+:xnack-" from a device's properties; NULL if there is no
 * target. The target's offset depends on HIP's release. The function therefore searches for text of
 * this form behind the device's name. */
static const char *amd_target(const char *properties, size_t size) {
    for (size_t at = 256; at + 8 < size; ++at)
        if (memcmp(properties + at, "gfx", 3) == 0 && strspn(properties + at + 3, "0123456789") > 0)
            return properties + at;
    return NULL;
}

static void print_device(int device) {
    static char properties[1 << 16];
    char name[256] = "", bus[64] = "";
    enum {
        KERNEL_EXEC_TIMEOUT = 18
    }; /* 1 if the driver limits a kernel's run time (since HIP 5) */
    int major = 0, minor = 0, watched = 0;
    HIP(DeviceGetName, char *, int, int)(name, sizeof name, device);
    HIP(DeviceGetPCIBusId, char *, int, int)(bus, sizeof bus, device);
    memset(properties, 0, sizeof properties);
    HIP(GetDeviceProperties, void *, int)(properties, device);
    const char *target = amd_target(properties, sizeof properties - 256);
    HIP(DeviceComputeCapability, int *, int *, int)(&major, &minor, device);
    HIP(DeviceGetAttribute, int *, int, int)(&watched, KERNEL_EXEC_TIMEOUT, device);
    char capability[32];
    snprintf(capability, sizeof capability, "sm_%d%d", major, minor);
    printf("device\t%d\nname\t%s\nbus\t%s\ntarget\t%s\nwatched\t%d\n", device, name, bus,
           target ? target : capability, watched);
}

void print_devices(void) {
    enum { INSUFFICIENT_DRIVER = 35, NO_DEVICE = 100, INVALID_DEVICE = 101 };
    int count = 0, number = 0;
    const int error = HIP(GetDeviceCount, int *)(&count);
    if (error == INSUFFICIENT_DRIVER || error == NO_DEVICE || error == INVALID_DEVICE)
        count = 0;
    else
        hip_check(error, "hipGetDeviceCount");
    HIP(RuntimeGetVersion, int *)(&number);
    printf("hip\t%d\n", number);
    if (hip_find("hipDriverGetVersion"))
        HIP(DriverGetVersion, int *)(&number);
    printf("driver\t%d\n", number);
    for (int device = 0; device < count; ++device)
        print_device(device);
}

void print_memory(void) {
    size_t available = 0, total = 0;
    hip_check(HIP(MemGetInfo, size_t *, size_t *)(&available, &total), "hipMemGetInfo");
    printf("free\t%zu\ntotal\t%zu\n", available, total);
}

/* ---- questions ---- */

enum { ROUNDS = 9, CALLS = 2000, BUFFER_ID = 7, DISABLE_TIMING = 2 };

static void *stream, *event, *block;
static char *host;
static union {
    char bytes[256];
    void *pointer;
} answer;
static size_t size;

/* Each ask_* function makes one query, through `asked`. HIP's function is looked up before the
 * measurement. */
static function asked;

static void ask_stream(void) {
    ((int (*)(void *))asked)(stream);
}
static void ask_flags(void) {
    ((int (*)(void *, void *))asked)(stream, &answer);
}
static void ask_event(void) {
    ((int (*)(void *))asked)(event);
}
static void ask_pointer(void) {
    ((int (*)(void *, const void *))asked)(&answer, block);
}
static void ask_host(void) {
    ((int (*)(void *, const void *))asked)(&answer, host);
}
static void ask_range(void) {
    ((int (*)(void *, size_t *, void *))asked)(&answer, &size, block);
}
static void ask_id(void) {
    ((int (*)(void *, int, void *))asked)(&answer, BUFFER_ID, block);
}
static void ask_nothing(void) {
    ((int (*)(void))asked)();
}
static void ask_device(void) {
    ((int (*)(void *))asked)(&answer);
}

static const struct {
    const char *name, *function;
    void (*ask)(void);
} questions[] = {
    {"hipStreamQuery", "hipStreamQuery", ask_stream},
    {"hipStreamGetFlags", "hipStreamGetFlags", ask_flags},
    {"hipStreamGetDevice", "hipStreamGetDevice", ask_flags},
    {"hipEventQuery", "hipEventQuery", ask_event},
    {"hipPointerGetAttributes, device", "hipPointerGetAttributes", ask_pointer},
    {"hipPointerGetAttributes, host", "hipPointerGetAttributes", ask_host},
    {"hipPointerGetAttribute", "hipPointerGetAttribute", ask_id},
    {"hipMemGetAddressRange", "hipMemGetAddressRange", ask_range},
    {"hipGetDevice", "hipGetDevice", ask_device},
    {"hipGetLastError", "hipGetLastError", ask_nothing},
};

static int compare(const void *left, const void *right) {
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double median_ns(void (*ask)(void)) {
    double samples[ROUNDS];
    for (int round = 0; round < ROUNDS; ++round) {
        const uint64_t begin = now_ns();
        for (int i = 0; i < CALLS; ++i)
            ask();
        samples[round] = (double)(now_ns() - begin) / CALLS;
    }
    qsort(samples, ROUNDS, sizeof *samples, compare);
    return samples[ROUNDS / 2];
}

void print_questions(void) {
    hip_check(HIP(StreamCreate, void **)(&stream), "hipStreamCreate");
    hip_check(HIP(EventCreateWithFlags, void **, unsigned)(&event, DISABLE_TIMING),
              "hipEventCreateWithFlags");
    hip_check(HIP(Malloc, void **, size_t)(&block, 4096), "hipMalloc");
    hip_check(HIP(EventRecord, void *, void *)(event, stream), "hipEventRecord");
    hip_check(HIP(DeviceSynchronize, void)(), "hipDeviceSynchronize");
    host = malloc(4096);
    for (size_t i = 0; i < sizeof questions / sizeof *questions; ++i) {
        asked = hip_find(questions[i].function);
        if (asked)
            printf("%s\t%.1f\n", questions[i].name, median_ns(questions[i].ask));
    }
}
