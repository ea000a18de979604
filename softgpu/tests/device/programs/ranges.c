/* Registers two ranges that begin at the same address. Such ranges exist when a program reallocates
 * memory before HIP has unpinned the old range. Prints 1 if the two ranges exist at different
 * device addresses. Then maps a range with a wrong size, and deregisters the ambiguous address;
 * prints the two results, and whether each range still exists. At the end, deregisters a range with
 * a unique address twice, and prints the two results. */
#include "driver.h"

enum { SMALL = 256, LARGE = 4096 };

static HSAKMT_STATUS (*enroll)(void *, HSAuint64);
static HSAKMT_STATUS (*map)(void *, HSAuint64, HSAuint64 *);
static HSAKMT_STATUS (*withdraw)(void *);
static HSAKMT_STATUS (*query)(const void *, HsaPointerInfo *);

static uint64_t mapped(void *begin, uint64_t bytes) {
    uint64_t va = 0;
    check(enroll(begin, bytes), "hsaKmtRegisterMemory");
    check(map(begin, bytes, &va), "hsaKmtMapMemoryToGPU");
    return va;
}

static int is_there(uint64_t va, uint64_t bytes) {
    HsaPointerInfo info;
    return query((void *)(uintptr_t)va, &info) == HSAKMT_STATUS_SUCCESS &&
           info.Type == HSA_POINTER_REGISTERED_USER && info.SizeInBytes == bytes;
}

int main(void) {
    char *pages = aligned_alloc(LARGE, 2 * LARGE), *alone = pages + LARGE;
    void *driver = open_driver();
    uint64_t va;
    *(void **)&enroll = dlsym(driver, "hsaKmtRegisterMemory");
    *(void **)&map = dlsym(driver, "hsaKmtMapMemoryToGPU");
    *(void **)&withdraw = dlsym(driver, "hsaKmtDeregisterMemory");
    *(void **)&query = dlsym(driver, "hsaKmtQueryPointerInfo");
    const uint64_t small = mapped(pages, SMALL), large = mapped(pages, LARGE);
    printf("%d\n", small != large && is_there(small, SMALL) && is_there(large, LARGE));
    printf("%d %d\n", map(pages, SMALL + 1, &va), withdraw(pages));
    printf("%d %d\n", is_there(small, SMALL), is_there(large, LARGE));
    mapped(alone, SMALL);
    printf("%d\n", withdraw(alone));
    printf("%d\n", withdraw(alone));
    return 0;
}
