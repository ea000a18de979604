/* Single cases: an event removes the pages of registered memory, or the program registers memory of
 * an unusual kind. The selftest's programs have more (tests/proofs/programs/registered.py).
 *
 *     cases NAME
 *     cases race ROUNDS    one thread unmaps what another maps at once */
#include "memory.h"

#include <sched.h>
#include <stdatomic.h>

/* Moves the end of the heap down and up again. */
static void case_brk(void) {
    char *const begin = (char *)(((uintptr_t)sbrk(0) + PAGE - 1) / PAGE * PAGE);
    const struct range at = {begin, 2 * PAGE};
    for (int i = 0; i < 2; i++) {
        if (brk(begin + at.bytes) != 0)
            fail("brk", begin, at.bytes);
        fill(at.address, at.bytes);
        pass(at);
        if (brk(begin) != 0)
            fail("brk", begin, at.bytes);
    }
}

/* Registers a part of a huge page, which the kernel then splits. */
static void case_huge(void) {
    enum { HUGE = 2 << 20 };
    char *const all =
        mmap(NULL, 2 * HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *const page = (char *)(((uintptr_t)all + HUGE - 1) / HUGE * HUGE);
    const struct range at = {page + 4 * PAGE, 8 * PAGE};
    madvise(page, HUGE, MADV_HUGEPAGE);
    memset(page, 1, HUGE);
    pass(at);
    madvise(page + 6 * PAGE, 2 * PAGE, MADV_DONTNEED);
    fill(at.address, at.bytes);
    pass(at);
    munmap(all, 2 * HUGE);
}

/* Unmaps one of two adjacent ranges; the library keeps the registration of the other range. */
static void case_touching(void) {
    const struct range first = {window, 2 * PAGE}, second = {window + 2 * PAGE, 2 * PAGE};
    map((struct range){window, 4 * PAGE});
    pass(first);
    pass(second);
    unmap(first);
    map(first);
    pass(second);
    pass(first);
}

/* Grows a mapping in place; the mapping keeps its pages. */
static void case_grown(void) {
    const struct range at = {window, 2 * PAGE}, whole = {window, 4 * PAGE};
    map(at);
    pass(at);
    munmap(window + 2 * PAGE, 2 * PAGE);
    if (mremap(at.address, at.bytes, whole.bytes, 0) != window)
        fail("mremap", window, whole.bytes);
    pass(at);
    pass(whole);
}

/* The pages of a file, and a private mapping's copies of them, can be replaced without any event.
 */
static void case_private_file(void) {
    const struct range at = {window, 2 * PAGE};
    const int file = memfd_create("registered", 0);
    if (ftruncate(file, 2 * PAGE) != 0 ||
        mmap(window, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, file, 0) != window)
        fail("mmap", window, PAGE);
    fill(at.address, at.bytes);
    pass(at);
    if (ftruncate(file, 0) != 0 || ftruncate(file, 2 * PAGE) != 0)
        fail("ftruncate", window, PAGE);
    fill(at.address, at.bytes);
    pass(at);
}

/* Unregistered memory is pageable again, though HIP still holds the registration: a copy to other
 * host memory has read the memory when the copy's call returns. */
static void case_pageable(void) {
    static char seen[BYTES], before[BYTES];
    const struct range at = {window, 2 * PAGE};
    map(at);
    pass(at);
    memcpy(before, at.address, at.bytes);
    mgpuMemcpy(seen, at.address, at.bytes, stream);
    fill(at.address, at.bytes);
    mgpuStreamSynchronize(stream);
    if (memcmp(seen, before, at.bytes) != 0)
        fail("a copy between pageable memory read it late", at.address, at.bytes);
}

/* Requests the device address of memory that is no longer registered: there is no such address. */
static void case_errors(void) {
    const struct range at = {window, PAGE};
    map(at);
    pass(at);
    mgpuMemHostUnregister(at.address);
    mgpuMemHostRegister(at.address, at.bytes);
    mgpuMemHostRegister(at.address, at.bytes);
    mgpuMemHostUnregister(at.address);
    mgpuMemHostUnregister(at.address);
}

/* Registers two ranges again and again; the library calls HIP once for each range. */
static void case_passes(void) {
    map((struct range){window, BYTES});
    for (int i = 0; i < 100; i++) {
        pass((struct range){window, PAGE});
        pass((struct range){window + PAGE, 3 * PAGE + 8});
    }
}

static void case_limit(void) {
    map((struct range){window, BYTES});
    for (int i = 0; i < PAGES; i++)
        pass((struct range){window + i * PAGE, PAGE});
}

/* Maps, registers and unmaps one address again and again. */
static void case_unmapped(void) {
    const struct range at = {window, PAGE};
    for (int i = 0; i < 20; i++) {
        map(at);
        pass(at);
        unmap(at);
    }
}

static void pass_at_exit(void) {
    pass((struct range){window, PAGE});
    pass((struct range){window, 2 * PAGE});
}

static void case_exit(void) {
    atexit(pass_at_exit);
    map((struct range){window, 2 * PAGE});
    pass((struct range){window, PAGE});
    atexit(pass_at_exit);
}

/* Registers and unregisters one page in a loop. Three threads run this function. The library, like
 * HIP, lets only one thread at a time register the page. */
static void *contend(void *unused) {
    (void)unused;
    for (int i = 0; i < 300; i++) {
        mgpuMemHostRegister(window, PAGE);
        mgpuMemHostUnregister(window);
    }
    return NULL;
}

static void case_threads(void) {
    pthread_t threads[3];
    map((struct range){window, PAGE});
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, contend, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    pass((struct range){window, PAGE});
}

/* ---- two threads, one address ----
 *
 * munmap removes pages before any process is notified. So a second thread may map, write and
 * register the address while the munmap of the first thread still runs. */

static _Atomic unsigned turn; /* the thread with number turn % 2 has its memory at the address */
static unsigned rounds;

static void race_round(unsigned round) {
    struct range at = {window, 4 * PAGE};
    while (mmap(at.address, at.bytes, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != at.address)
        continue;
    memset(at.address, (int)(round % 251 + 1), at.bytes);
    for (int i = 0; i < 2; i++) { /* registered twice, to use the cached registration */
        mgpuMemHostRegister(at.address, at.bytes);
        check_up(&at);
        mgpuMemHostUnregister(at.address);
    }
    atomic_store(&turn, round + 1);
    munmap(at.address, at.bytes);
}

static void *race_half(void *half) {
    for (unsigned round = (unsigned)(uintptr_t)half; round < rounds; round += 2) {
        for (unsigned spins = 1; atomic_load(&turn) != round; spins++)
            if (spins % 4096 == 0)
                sched_yield(); /* a longer wait would miss the other thread's munmap */
        race_round(round);
    }
    return NULL;
}

static void race(void) {
    pthread_t other;
    munmap(window, BYTES);
    pthread_create(&other, NULL, race_half, (void *)1);
    race_half((void *)0);
    pthread_join(other, NULL);
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"brk", case_brk},
    {"huge", case_huge},
    {"touching", case_touching},
    {"grown", case_grown},
    {"private-file", case_private_file},
    {"pageable", case_pageable},
    {"errors", case_errors},
    {"passes", case_passes},
    {"limit", case_limit},
    {"unmapped", case_unmapped},
    {"exit", case_exit},
    {"threads", case_threads},
};

int main(int argc, char **argv) {
    if (argc < 2)
        return 2;
    open_window();
    stream = mgpuStreamCreate();
    block = mgpuMemAlloc(BYTES, stream, false);
    if (argc > 2) {
        rounds = (unsigned)atoi(argv[2]);
        race();
        return 0;
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (strcmp(cases[i].name, argv[1]) == 0)
            cases[i].run();
    return 0;
}
