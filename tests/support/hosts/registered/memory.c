#include "memory.h"

char *window;
void *stream, *block;

void fail(const char *what, const void *address, size_t bytes) {
    fprintf(stderr, "%s: %zu bytes at page %ld\n", what, bytes,
            (long)((const char *)address - window) / PAGE);
    exit(1);
}

void fill(char *at, size_t bytes) {
    static size_t value;
    value += 41;
    for (size_t i = 0; i < bytes; i++)
        at[i] = (char)(value + i * 7 + i / PAGE);
}

void map(struct range at) {
    if (mmap(at.address, at.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
             -1, 0) != at.address)
        fail("mmap", at.address, at.bytes);
    fill(at.address, at.bytes);
}

/* Unmaps a range, and reserves its address space, so that no other mapping takes the range. */
void unmap(struct range at) {
    if (munmap(at.address, at.bytes) != 0 ||
        mmap(at.address, at.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
            at.address)
        fail("munmap", at.address, at.bytes);
}

void check_up(const struct range *at) {
    static char seen[BYTES];
    mgpuMemcpy(block, at->address, at->bytes, stream);
    mgpuMemcpy(seen, block, at->bytes, stream);
    mgpuStreamSynchronize(stream);
    if (memcmp(seen, at->address, at->bytes) != 0)
        fail("the device saw other memory than the host wrote", at->address, at->bytes);
}

void pass(struct range at) {
    mgpuMemHostRegister(at.address, at.bytes);
    check_up(&at);
    mgpuMemHostUnregister(at.address);
}

void open_window(void) {
    static uintptr_t next = 0x200000000000;
    window = mmap((void *)next, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
                  -1, 0);
    if (window != (char *)next)
        fail("no window", window, BYTES);
    next += BYTES;
}
