/* Queries HIP about itself and its devices. */
#include "hip.h"

#include <stdio.h>
#include <string.h>

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
