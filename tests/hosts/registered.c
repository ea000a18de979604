/* Random programs over an address space: memory is mapped, unmapped, moved, dropped and written,
 * registered, copied to the device and back, and unregistered. The device must see what the host
 * wrote, always.
 *
 *     registered walk SEED PROGRAMS    PROGRAMS programs, each from a seed of its own
 *     registered race ROUNDS           one thread unmaps what another maps at once
 *     registered case NAME             one of the cases at the end
 *
 * Exits with 1 and one line if the device saw something else. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

void *mgpuStreamCreate(void);
void mgpuStreamDestroy(void *stream);
void mgpuStreamSynchronize(void *stream);
void *mgpuMemAlloc(uint64_t bytes, void *stream, bool shared);
void mgpuMemFree(void *block, void *stream);
void mgpuMemcpy(void *to, void *from, size_t bytes, void *stream);
void mgpuMemset32(void *block, int value, size_t count, void *stream);
void mgpuMemHostRegister(void *address, uint64_t bytes);
void mgpuMemHostUnregister(void *address);

enum { PAGE = 4096, PAGES = 48, BYTES = PAGES * PAGE, STEPS = 60, RANGES = 8 };

static char *window; /* PAGES pages; none of them is anybody else's */
static bool mapped[PAGES];
static struct range {
    char *address;
    size_t bytes;
} held[RANGES], known[RANGES]; /* registered now; registered lately, to be so again */
static int held_count, known_count;
static char scratch[BYTES], before[BYTES];
static uint64_t seed, now = 1;
static void *stream, *block;

static unsigned below(unsigned limit) {
    now ^= now << 13;
    now ^= now >> 7;
    now ^= now << 17;
    return (unsigned)(now >> 33) % limit;
}

static void fail(const char *what, const void *address, size_t bytes) {
    fprintf(stderr, "seed %llu: %s: %zu bytes at page %ld\n", (unsigned long long)seed, what, bytes,
            (long)((const char *)address - window) / PAGE);
    exit(1);
}

static void fill(char *at, size_t bytes) {
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

static void release_in(const char *begin, const char *end) {
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

static void map(struct range at) {
    release_in(at.address, at.address + at.bytes);
    if (mmap(at.address, at.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
             -1, 0) != at.address)
        fail("mmap", at.address, at.bytes);
    note_mapped(at.address, at.bytes, true);
    fill(at.address, at.bytes);
}

/* The address space stays the program's: what is unmapped may not be another's. */
static void unmap(struct range at) {
    release_in(at.address, at.address + at.bytes);
    if (munmap(at.address, at.bytes) != 0 ||
        mmap(at.address, at.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
            at.address)
        fail("munmap", at.address, at.bytes);
    note_mapped(at.address, at.bytes, false);
}

static void drop(struct range at) {
    if (!is_mapped(at.address, at.address + at.bytes))
        return;
    release_in(at.address, at.address + at.bytes);
    madvise(at.address, at.bytes, MADV_DONTNEED);
    fill(at.address, at.bytes);
}

/* Each page by itself: neighbours may be other mappings. */
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

/* A range that was registered before, as programs do, or some other. */
static struct range some_range(void) {
    if (known_count && below(3))
        return known[below((unsigned)known_count)];
    const struct range pages = some_pages();
    const size_t first = below(2) ? 0 : 8 * below((unsigned)pages.bytes / 16);
    return (struct range){pages.address + first, pages.bytes - first - (below(2) ? 0 : 8)};
}

static void acquire(struct range at) {
    if (held_count == RANGES || !is_mapped(at.address, at.address + at.bytes) ||
        is_held(at.address, at.address + at.bytes))
        return;
    mgpuMemHostRegister(at.address, at.bytes);
    held[held_count++] = at;
    known[known_count < RANGES ? known_count++ : (int)below(RANGES)] = at;
}

/* Up, and back into memory that is nobody's: what the device saw. */
static void check_up(const struct range *at) {
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

/* Work is pending when it is unregistered: that waits, so the host may read at once. */
static void check_wait(int which) {
    const struct range at = held[which];
    const int value = (int)below(1u << 30);
    mgpuMemset32(block, value, at.bytes / 4, stream);
    mgpuMemcpy(at.address, block, at.bytes / 4 * 4, stream);
    release(which);
    if (at.bytes >= 4 && memcmp(at.address, &value, 4) != 0)
        fail("work was pending after an unregister", at.address, at.bytes);
}

/* What is not registered has been read when the copy returns. */
static void check_pageable(struct range at) {
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

/* While a child shares the pages, the parent writes: it may get copies of them. What is registered
 * then is HIP's matter, and the kernel's; what was registered before is the library's. */
static void split(void) {
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

static void step(void) {
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

/* Each program has addresses of its own, as the library learns which ones do not pay. */
static void open_window(void) {
    static uintptr_t next = 0x200000000000;
    window = mmap((void *)next, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
                  -1, 0);
    if (window != (char *)next)
        fail("no window", window, BYTES);
    next += BYTES;
    memset(mapped, 0, sizeof mapped);
    known_count = 0;
}

static void walk(uint64_t first, unsigned programs) {
    for (seed = first; seed < first + programs; seed++) {
        now = seed * 0x9E3779B97F4A7C15u + 1;
        open_window();
        map((struct range){window, BYTES / 2});
        for (int i = 0; i < STEPS; i++)
            step();
        release_in(window, window + BYTES);
        munmap(window, BYTES);
    }
}

/* ---- two threads, one address ----
 *
 * munmap takes pages away before anybody is told. So the other thread may map, write and register
 * the address while the first one's munmap goes on. */

static _Atomic unsigned turn; /* whose memory lies at the address: that of the thread turn % 2 */
static unsigned rounds;

static void race_round(unsigned round) {
    struct range at = {window, 4 * PAGE};
    while (mmap(at.address, at.bytes, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != at.address)
        continue;
    memset(at.address, (int)(round % 251 + 1), at.bytes);
    for (int i = 0; i < 2; i++) { /* used again, so it pays */
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
                sched_yield(); /* at once would miss the moment */
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

/* ---- single cases ---- */

static void pass(struct range at) {
    mgpuMemHostRegister(at.address, at.bytes);
    check_up(&at);
    mgpuMemHostUnregister(at.address);
}

/* The pages go on elsewhere, and others come here: MREMAP_DONTUNMAP leaves the mapping. */
static void case_moved(void) {
    const struct range at = {window, 2 * PAGE};
    map(at);
    pass(at);
    if (mremap(at.address, at.bytes, at.bytes, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP,
               window + 8 * PAGE) != window + 8 * PAGE)
        fail("mremap", at.address, at.bytes);
    fill(at.address, at.bytes);
    pass(at);
}

/* munmap, and other memory at its address. */
static void case_unmapped(void) {
    const struct range at = {window, 2 * PAGE};
    map(at);
    pass(at);
    unmap(at);
    map(at);
    pass(at);
}

static void case_dropped(void) {
    const struct range at = {window, 2 * PAGE};
    map(at);
    pass(at);
    drop(at);
    pass(at);
}

/* The end of the heap goes down and up again. */
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

/* A part of a huge page, and then the page is split. */
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

/* Pages that hugetlbfs has set aside, where a machine has some. */
static void case_hugetlb(void) {
    enum { HUGE = 2 << 20 };
    for (int i = 0; i < 2; i++) {
        char *const page =
            mmap(window + HUGE, HUGE, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_FIXED_NOREPLACE, -1, 0);
        if (page == MAP_FAILED)
            return;
        memset(page, i + 1, HUGE);
        pass((struct range){page, 8 * PAGE});
        munmap(page, HUGE);
    }
}

/* Of two that touch one goes; the other one is kept. */
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

/* A mapping that grows where it lies keeps its pages. */
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

/* Two in one page, of which one is HIP's again: the other one is watched still. */
static void share_page(struct range goes, struct range stays, struct range page) {
    map(page);
    pass(goes);
    pass(stays);
    check_pageable(goes);
    map(page);
    pass(stays);
}

static void case_first_page_is_shared(void) {
    share_page((struct range){window + 1024, 2 * PAGE}, (struct range){window, 512},
               (struct range){window, 3 * PAGE});
}

static void case_last_page_is_shared(void) {
    share_page((struct range){window, PAGE + 1024}, (struct range){window + PAGE + 2048, 512},
               (struct range){window, 2 * PAGE});
}

/* A file's pages can be replaced by means of which no event tells. */
static void case_shared_memory(void) {
    const struct range at = {window, 2 * PAGE};
    const int file = memfd_create("registered", 0);
    if (ftruncate(file, 2 * PAGE) != 0 ||
        mmap(window, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) != window)
        fail("mmap", window, PAGE);
    fill(at.address, at.bytes);
    pass(at);
    if (ftruncate(file, 0) != 0 || ftruncate(file, 2 * PAGE) != 0)
        fail("ftruncate", window, PAGE);
    fill(at.address, at.bytes);
    pass(at);
}

/* Private copies of a file's pages go with the pages. */
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

static void case_forked(void) {
    const struct range at = {window, 2 * PAGE};
    map(at);
    pass(at);
    split();
    pass(at);
}

/* Work is pending at the unregister. */
static void case_pending(void) {
    const struct range at = {window, 2 * PAGE};
    map(at);
    acquire(at);
    check_wait(0);
}

/* Other bytes from the same address, and a part: HIP would refuse them while it has the first. */
static void case_other_bytes(void) {
    map((struct range){window, 8 * PAGE});
    pass((struct range){window, 4 * PAGE});
    pass((struct range){window, 2 * PAGE});
    pass((struct range){window + PAGE, 4 * PAGE});
    pass((struct range){window, 8 * PAGE});
}

/* Unregistered memory is pageable again, though HIP has it still. */
static void case_pageable(void) {
    const struct range at = {window, 2 * PAGE};
    map(at);
    pass(at);
    check_pageable(at);
}

/* The device address of what is not registered any more is none. */
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

/* The same bytes each time: the library asks HIP once. */
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

/* Two threads take turns at one address, or try at once: one of them holds it, as with HIP. */
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

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"moved", case_moved},
    {"unmapped", case_unmapped},
    {"dropped", case_dropped},
    {"brk", case_brk},
    {"huge", case_huge},
    {"hugetlb", case_hugetlb},
    {"touching", case_touching},
    {"grown", case_grown},
    {"first-page-is-shared", case_first_page_is_shared},
    {"last-page-is-shared", case_last_page_is_shared},
    {"shared-memory", case_shared_memory},
    {"private-file", case_private_file},
    {"forked", case_forked},
    {"pending", case_pending},
    {"other-bytes", case_other_bytes},
    {"pageable", case_pageable},
    {"errors", case_errors},
    {"passes", case_passes},
    {"limit", case_limit},
    {"exit", case_exit},
    {"threads", case_threads},
};

static int run_case(const char *name) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (strcmp(cases[i].name, name) == 0) {
            cases[i].run();
            return 0;
        }
    return 2;
}

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    open_window();
    stream = mgpuStreamCreate();
    block = mgpuMemAlloc(BYTES, stream, false);
    if (strcmp(argv[1], "walk") == 0) {
        walk(strtoull(argv[2], NULL, 10), (unsigned)atoi(argv[3]));
    } else if (strcmp(argv[1], "case") == 0) {
        return run_case(argv[2]);
    } else {
        rounds = (unsigned)atoi(argv[2]);
        race();
    }
    mgpuMemFree(block, stream);
    mgpuStreamDestroy(stream);
    return 0;
}
