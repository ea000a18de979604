#include "memory.h"

char *window;
void *stream, *block;
uint64_t seed;

static bool mapped[PAGES];
static struct range held[RANGES],
    known[RANGES]; /* held: registered now; known: registered before, and to be used again */
static int held_count, known_count;
static char scratch[BYTES], before[BYTES];
static uint64_t now = 1;

void begin_program(uint64_t with) {
    seed = with;
    now = with * 0x9E3779B97F4A7C15u + 1;
    open_window();
}

static unsigned below(unsigned limit) {
    now ^= now << 13;
    now ^= now >> 7;
    now ^= now << 17;
    return (unsigned)(now >> 33) % limit;
}

void fail(const char *what, const void *address, size_t bytes) {
    fprintf(stderr, "seed %llu: %s: %zu bytes at page %ld\n", (unsigned long long)seed, what, bytes,
            (long)((const char *)address - window) / PAGE);
    exit(1);
}

void fill(char *at, size_t bytes) {
    const unsigned value = below(256);
    for (size_t i = 0; i < bytes; i++)
        at[i] = (char)(value + i * 7 + i / PAGE);
}

/* ---- what the program has ---- */

static bool meets(const struct range *range, const char *begin, const char *end) {
    return range->address < end && begin < range->address + range->bytes;
}

static bool is_held(const char *begin, const char *end) {
    for (int i = 0; i < held_count; i++)
        if (meets(&held[i], begin, end))
            return true;
    return false;
}

static void release(int which) {
    mgpuMemHostUnregister(held[which].address);
    held[which] = held[--held_count];
}

void release_in(const char *begin, const char *end) {
    for (int i = held_count; i-- > 0;)
        if (meets(&held[i], begin, end))
            release(i);
}

static bool is_mapped(const char *begin, const char *end) {
    for (long page = (begin - window) / PAGE; page * PAGE < end - window; page++)
        if (!mapped[page])
            return false;
    return true;
}

static void note_mapped(const char *at, size_t bytes, bool is) {
    for (size_t i = 0; i < bytes / PAGE; i++)
        mapped[(size_t)(at - window) / PAGE + i] = is;
}

/* ---- steps ---- */

static struct range some_pages(void) {
    const unsigned first = below(PAGES), count = 1 + below(PAGES - first < 8 ? PAGES - first : 8);
    return (struct range){window + first * PAGE, count * PAGE};
}

void map(struct range at) {
    release_in(at.address, at.address + at.bytes);
    if (mmap(at.address, at.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
             -1, 0) != at.address)
        fail("mmap", at.address, at.bytes);
    note_mapped(at.address, at.bytes, true);
    fill(at.address, at.bytes);
}

/* Unmaps a range, and reserves its address space, so that no other mapping takes the range. */
void unmap(struct range at) {
    release_in(at.address, at.address + at.bytes);
    if (munmap(at.address, at.bytes) != 0 ||
        mmap(at.address, at.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
            at.address)
        fail("munmap", at.address, at.bytes);
    note_mapped(at.address, at.bytes, false);
}

void drop(struct range at) {
    if (!is_mapped(at.address, at.address + at.bytes))
        return;
    release_in(at.address, at.address + at.bytes);
    madvise(at.address, at.bytes, MADV_DONTNEED);
    fill(at.address, at.bytes);
}

/* Moves each page separately, because two adjacent pages may belong to different mappings. */
static void move(struct range from, struct range to) {
    if (from.address + from.bytes > to.address && to.address + to.bytes > from.address)
        return;
    const size_t bytes = from.bytes < to.bytes ? from.bytes : to.bytes;
    if (!is_mapped(from.address, from.address + bytes))
        return;
    release_in(from.address, from.address + bytes);
    release_in(to.address, to.address + bytes);
    for (size_t at = 0; at < bytes; at += PAGE)
        if (mremap(from.address + at, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to.address + at) !=
            to.address + at)
            fail("mremap", from.address, bytes);
    note_mapped(to.address, bytes, true);
    unmap((struct range){from.address, bytes});
}

/* Returns a new range, or the range of an earlier registration, because programs register the same
 * range again. */
static struct range some_range(void) {
    if (known_count && below(3))
        return known[below((unsigned)known_count)];
    const struct range pages = some_pages();
    const size_t first = below(2) ? 0 : 8 * below((unsigned)pages.bytes / 16);
    return (struct range){pages.address + first, pages.bytes - first - (below(2) ? 0 : 8)};
}

void acquire(struct range at) {
    if (held_count == RANGES || !is_mapped(at.address, at.address + at.bytes) ||
        is_held(at.address, at.address + at.bytes))
        return;
    mgpuMemHostRegister(at.address, at.bytes);
    held[held_count++] = at;
    known[known_count < RANGES ? known_count++ : (int)below(RANGES)] = at;
}

/* Copies a range to the device, and back into unregistered memory: checks the values that the
 * device read. */
void check_up(const struct range *at) {
    mgpuMemcpy(block, at->address, at->bytes, stream);
    mgpuMemcpy(scratch, block, at->bytes, stream);
    mgpuStreamSynchronize(stream);
    if (memcmp(scratch, at->address, at->bytes) != 0)
        fail("the device saw other memory than the host wrote", at->address, at->bytes);
}

static void check_down(const struct range *at) {
    const int value = (int)below(1u << 30);
    mgpuMemset32(block, value, at->bytes / 4, stream);
    mgpuMemcpy(at->address, block, at->bytes / 4 * 4, stream);
    mgpuStreamSynchronize(stream);
    for (size_t i = 0; i < at->bytes / 4; i++)
        if (memcmp(at->address + 4 * i, &value, 4) != 0)
            fail("the host sees other memory than the device wrote", at->address, at->bytes);
}

/* Unregisters memory while work is pending: the unregister waits for the work, and the host may
 * then read the memory. */
void check_wait(int which) {
    const struct range at = held[which];
    const int value = (int)below(1u << 30);
    mgpuMemset32(block, value, at.bytes / 4, stream);
    mgpuMemcpy(at.address, block, at.bytes / 4 * 4, stream);
    release(which);
    if (at.bytes >= 4 && memcmp(at.address, &value, 4) != 0)
        fail("work was pending after an unregister", at.address, at.bytes);
}

/* Checks that a copy from unregistered memory has read the memory when the copy's call returns. */
void check_pageable(struct range at) {
    if (!is_mapped(at.address, at.address + at.bytes) || is_held(at.address, at.address + at.bytes))
        return;
    memcpy(before, at.address, at.bytes);
    mgpuMemcpy(block, at.address, at.bytes, stream);
    fill(at.address, at.bytes);
    mgpuMemcpy(scratch, block, at.bytes, stream);
    mgpuStreamSynchronize(stream);
    if (memcmp(scratch, before, at.bytes) != 0)
        fail("a copy from pageable memory read it late", at.address, at.bytes);
}

/* Does the work of check_pageable for a copy that ends in other host memory. */
void check_pageable_to_host(struct range at) {
    memcpy(before, at.address, at.bytes);
    mgpuMemcpy(scratch, at.address, at.bytes, stream);
    fill(at.address, at.bytes);
    mgpuStreamSynchronize(stream);
    if (memcmp(scratch, before, at.bytes) != 0)
        fail("a copy between pageable memory read it late", at.address, at.bytes);
}

/* Writes in the parent while a child shares the pages: the parent may get copies of these pages.
 * HIP and the kernel decide about memory that is registered during the fork. The library is
 * responsible for registrations that the program has ended before the fork. */
void split(void) {
    int ends[2];
    char byte = 0;
    release_in(window, window + BYTES);
    if (pipe(ends) != 0)
        return;
    const pid_t child = fork();
    if (child == 0) {
        close(ends[1]);
        _exit(read(ends[0], &byte, 1) < 0);
    }
    for (int page = 0; page < PAGES; page++)
        if (mapped[page])
            window[page * PAGE]++;
    close(ends[0]);
    close(ends[1]);
    if (child > 0)
        waitpid(child, NULL, 0);
}

void step(void) {
    const int which = held_count ? (int)below((unsigned)held_count) : -1;
    switch (below(24)) {
    case 0:
        map(some_pages());
        break;
    case 1:
        unmap(some_pages());
        break;
    case 2:
        drop(some_pages());
        break;
    case 3:
        move(some_pages(), some_pages());
        break;
    case 4:
        check_pageable(some_range());
        break;
    case 5:
        if (!below(8))
            split();
        break;
    case 6:
        if (which >= 0)
            check_wait(which);
        break;
    case 7:
    case 8:
    case 9:
    case 10:
        if (which >= 0)
            release(which);
        break;
    case 11:
    case 12:
        if (which >= 0)
            fill(held[which].address, held[which].bytes);
        break;
    case 13:
        if (which >= 0)
            check_down(&held[which]);
        break;
    case 14:
    case 15:
        if (which >= 0)
            check_up(&held[which]);
        break;
    default:
        acquire(some_range());
        if (held_count)
            check_up(&held[held_count - 1]);
    }
}

/* Gives each program its own addresses, because the library learns at which addresses cached
 * registrations are useless. */
void open_window(void) {
    static uintptr_t next = 0x200000000000;
    window = mmap((void *)next, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
                  -1, 0);
    if (window != (char *)next)
        fail("no window", window, BYTES);
    next += BYTES;
    memset(mapped, 0, sizeof mapped);
    known_count = 0;
}

void pass(struct range at) {
    mgpuMemHostRegister(at.address, at.bytes);
    check_up(&at);
    mgpuMemHostUnregister(at.address);
}
