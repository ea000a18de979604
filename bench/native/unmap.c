/* Measures munmap of registered memory: MGPU_RT_EXCLUSIVE=on keeps the registration, so the kernel
 * notifies the library first.
 *
 *     unmap RUNTIME COUNT
 *
 * Prints JSON: for each size in bytes, the ns of each munmap. */
#include "native.h"

#include <string.h>
#include <sys/mman.h>

static const size_t sizes[] = {4 << 10, 64 << 10, 1 << 20, 16 << 20};
static uintptr_t next = UINT64_C(0x200000000000);

static void (*acquire)(void *address, uint64_t bytes);
static void (*release)(void *address);

/* Uses a new address each time. If four registrations at one address become stale without a reuse,
 * the library keeps no further registration at this address. */
static uint64_t measure(size_t bytes) {
    void *memory = mmap((void *)next, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (memory != (void *)next)
        fail("cannot map", "memory");
    next += 2 * bytes;
    memset(memory, 1, bytes);
    acquire(memory, bytes);
    release(memory);
    const uint64_t begin = now_ns();
    munmap(memory, bytes);
    return now_ns() - begin;
}

int main(int argc, char **argv) {
    if (argc != 3)
        fail("usage", "unmap RUNTIME COUNT");
    void *runtime = open_library(argv[1]);
    *(void **)&acquire = symbol(runtime, "mgpuMemHostRegister");
    *(void **)&release = symbol(runtime, "mgpuMemHostUnregister");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        printf("%s\"%zu\": [", i ? ", " : "{", sizes[i]);
        for (long round = atol(argv[2]), left = round; left > 0; left--)
            printf("%s%llu", left < round ? ", " : "", (unsigned long long)measure(sizes[i]));
        printf("]");
    }
    puts("}");
    return 0;
}
