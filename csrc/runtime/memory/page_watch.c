#include "memory/page_watch.h"
#include "atomics.h"
#include "process/own_thread.h"
#include "proof.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE 2U
#endif

enum { EVENTS = 16 };

static int events = -1;        /* the userfaultfd, in the program's table of descriptors */
static struct stat descriptor; /* device and inode of `events`: each userfaultfd has its own */
static bool lost;              /* the program has closed `events` */
static uint64_t reads; /* odd from before the read of an event until the event is recorded */
static void (*tell)(void);

/* ---- the descriptor ---- */

/* Returns true if the descriptor is still the watch's. Once the program has closed the descriptor,
 * the number never denotes the watch again. So after a call that used the number, the result true
 * means that the call used the watch. */
static bool is_ours(void) {
    struct stat now;
    if (events < 0 || load_relaxed(&lost))
        return false;
    if (fstat(events, &now) == 0 && now.st_ino == descriptor.st_ino &&
        now.st_dev == descriptor.st_dev)
        return true;
    store_relaxed(&lost, true);
    return false;
}

bool page_watch_is_lost(void) {
    return load_relaxed(&lost);
}

/* Moves a descriptor to a high number, which the program is unlikely to want. */
static int move_up(int low) {
    const int high = fcntl(low, F_DUPFD_CLOEXEC, HIGH_DESCRIPTOR);
    const int moved = high >= 0 ? high : fcntl(low, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    close(low);
    return moved;
}

/* ---- changes ----
 *
 * The kernel keeps a thread that unmaps watched pages waiting until the thread of events has read
 * the event. The waiting thread may hold any lock of the process: a signal handler may unmap pages
 * while its thread is inside this library. So the thread of events takes no lock, and never waits.
 *
 * A ring. `noted` and `applied` count changes, and change i is at place i % CHANGES. The thread of
 * events never waits for a free place. If a reader finds that places were overwritten, the reader
 * assumes that all pages have changed. */

enum { CHANGES = 256 };

static struct {
    uintptr_t begin, end;
} changes[CHANGES];
static uint64_t noted, applied;

static void note_change(uintptr_t begin, uintptr_t end) {
    const uint64_t now = load_relaxed(&noted);
    store_seq_cst(&changes[now % CHANGES].begin, begin);
    store_seq_cst(&changes[now % CHANGES].end, end);
    store_seq_cst(&noted, now + 1);
}

bool page_changes_are_applied(void) {
    return load_seq_cst(&applied) == load_seq_cst(&noted);
}

void page_changes_apply(void (*apply)(uintptr_t begin, uintptr_t end)) {
    const uint64_t last = load_seq_cst(&noted);
    for (uint64_t i = load_relaxed(&applied); i != last; i++) {
        const uintptr_t begin = load_seq_cst(&changes[i % CHANGES].begin);
        const uintptr_t end = load_seq_cst(&changes[i % CHANGES].end);
        if (load_seq_cst(&noted) - i >= CHANGES) { /* the thread of events may have overwritten
                                                    * this place */
            apply(0, UINTPTR_MAX);
            break;
        }
        apply(begin, end);
    }
    store_seq_cst(&applied, last);
}

/* ---- drops ----
 *
 * One bit for each chunk of memory that had a drop. Chunks whose numbers differ by a multiple of
 * CHUNKS share a bit. A bit is never cleared, because nothing tells when a drop has ended. */

enum { CHUNK = 64 << 10, CHUNKS = 1 << 18, WORD = 64 };

static uint64_t dropped[CHUNKS / WORD];

/* Returns the number of chunks to look at: the chunks of these bytes, but at most all bits. */
static uintptr_t count_chunks(uintptr_t begin, uintptr_t end) {
    const uintptr_t count = (end - 1) / CHUNK - begin / CHUNK + 1;
    return count < CHUNKS ? count : CHUNKS;
}

static void note_drop(uintptr_t begin, uintptr_t end) {
    const uintptr_t first = begin / CHUNK, count = count_chunks(begin, end);
    for (uintptr_t i = first; i < first + count; i++)
        (void)fetch_or_relaxed(&dropped[i % CHUNKS / WORD], UINT64_C(1) << (i % WORD));
    note_change(begin, end);
}

bool page_changes_had_drop(const void *address, size_t bytes) {
    const uintptr_t begin = (uintptr_t)address, first = begin / CHUNK;
    const uintptr_t count = count_chunks(begin, begin + bytes);
    for (uintptr_t i = first; i < first + count; i++)
        if (load_relaxed(&dropped[i % CHUNKS / WORD]) >> (i % WORD) & 1)
            return true;
    return false;
}

/* ---- reading ---- */

static void record_event(const struct uffd_msg *event) {
    const uintptr_t begin = event->arg.remove.start, end = event->arg.remove.end;
    const uintptr_t from = event->arg.remap.from;
    if (event->event == UFFD_EVENT_REMAP)
        PROOF_STEP(moved_pages_are_told, note_change(from, from + event->arg.remap.len));
    else if (event->event == UFFD_EVENT_UNMAP)
        PROOF_STEP(unmapped_pages_are_told, note_change(begin, end));
    else if (event->event == UFFD_EVENT_REMOVE)
        PROOF_STEP(dropped_pages_are_told, note_drop(begin, end));
}

/* Gives the calling thread a table of descriptors of its own, in which only the watch is open. */
static bool leave_table(void) {
    const unsigned kept = (unsigned)events;
    return syscall(SYS_close_range, kept + 1, ~0U, CLOSE_RANGE_UNSHARE) == 0;
}

static void close_others(void) {
    if (events > 0)
        (void)syscall(SYS_close_range, 0U, (unsigned)events - 1, 0U);
}

struct start {
    sem_t done;
    bool left; /* the thread has its own table */
};

/* Reads the events. While an event is unread, the kernel's answer makes page_watch_settled return
 * false. Before the thread reads the event, `reads` becomes odd, so page_watch_settled still
 * returns false. */
static void *read_events(void *starting) {
    struct start *start = starting;
    const int own = events;
    const bool left = leave_table();
    start->left = left;
    sem_post(&start->done); /* `start` is gone from here on */
    if (!left)
        return NULL;
    close_others();
    for (;;) {
        struct uffd_msg read_ones[EVENTS];
        struct pollfd wait = {.fd = own, .events = POLLIN};
        (void)poll(&wait, 1, -1);
        (void)fetch_add_seq_cst(&reads, 1);
        const ssize_t bytes = read(own, read_ones, sizeof read_ones);
        for (ssize_t i = 0; i < bytes / (ssize_t)sizeof *read_ones; i++)
            record_event(&read_ones[i]);
        (void)fetch_add_seq_cst(&reads, 1);
        tell();
    }
    return NULL;
}

/* Starts the thread that reads events. The thread lives as long as the process: if the program
 * unmaps watched pages while no thread reads events, the program hangs. */
static bool start_reading(void) {
    struct start start = {.left = false};
    sem_init(&start.done, 0, 0);
    const bool created = own_thread_start(NULL, read_events, &start);
    while (created && sem_wait(&start.done) != 0)
        continue;
    sem_destroy(&start.done);
    return created && start.left;
}

/* ---- opening ---- */

/* Returns true for Linux 5.12 and later. On older kernels, the parent may get a copy of a pinned
 * page after a fork, while HIP still uses the old page. */
static bool kernel_serves(void) {
    struct utsname kernel;
    int major = 0, minor = 0;
    return uname(&kernel) == 0 && sscanf(kernel.release, "%d.%d", &major, &minor) == 2 &&
           (major > 5 || (major == 5 && minor >= 12));
}

const char *page_watch_open(void (*changed)(void)) {
    struct uffdio_api api = {.api = UFFD_API,
                             .features = UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_REMOVE |
                                         UFFD_FEATURE_EVENT_REMAP};
    if (!kernel_serves())
        return "it takes Linux 5.12";
    const int opened = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
    if (opened < 0)
        return errno == EPERM
                   ? "the system call userfaultfd is forbidden here, as in most containers"
                   : "the kernel has no userfaultfd";
    tell = changed;
    events = move_up(opened);
    if (events < 0)
        return "the process has no free descriptor";
    if (ioctl(events, UFFDIO_API, &api) == 0 && fstat(events, &descriptor) == 0 && start_reading())
        return NULL;
    close(events);
    events = -1;
    return "userfaultfd does not report unmapped pages here";
}

void page_watch_forked(void) {
    if (is_ours())
        close(events);
    events = -1;
}

/* ---- ranges ---- */

bool page_watch_add(const void *address, size_t bytes) {
    const uintptr_t begin = page_of((uintptr_t)address);
    const uintptr_t end = page_of((uintptr_t)address + bytes + page_bytes - 1);
    struct uffdio_register range = {.range = {begin, end - begin}, .mode = UFFDIO_REGISTER_MODE_WP};
    return is_ours() && ioctl(events, UFFDIO_REGISTER, &range) == 0 && is_ours();
}

void page_watch_remove(uintptr_t begin, size_t bytes) {
    struct uffdio_range range = {begin, bytes};
    if (bytes && is_ours())
        (void)ioctl(events, UFFDIO_UNREGISTER, &range);
}

/* The ioctl UFFDIO_WRITEPROTECT returns EAGAIN if a mapping is changing, or if the event of a
 * change is unread. Otherwise the ioctl checks its arguments, and returns EINVAL for zero bytes. So
 * EINVAL means that no change is pending (userfaultfd_writeprotect and mmap_changing in Linux). A
 * file of the program may answer EINVAL too, so the function then checks the descriptor. */
bool page_watch_settled(void) {
    struct uffdio_writeprotect nothing = {.mode = 0};
    const uint64_t before = load_seq_cst(&reads);
    const bool quiet = ioctl(events, UFFDIO_WRITEPROTECT, &nothing) != 0 && errno == EINVAL;
    return PROOF(descriptor_is_the_watch, is_ours()) && quiet &&
           PROOF(no_event_is_in_hand, before % 2 == 0 && load_seq_cst(&reads) == before);
}

/* ---- mappings ---- */

/* The ioctl PROCMAP_QUERY of Linux 6.11 (linux/fs.h), which finds a mapping in 1 us. */
struct mapping_query {
    uint64_t size, flags, address;                                /* given */
    uint64_t begin, end, mapping_flags, page_size, offset, inode; /* returned */
    uint32_t major, minor, name_size, build_id_size;              /* returned; wanted: 0 */
    uint64_t name, build_id;                                      /* 0 */
};
#define MAPPING_QUERY _IOWR('f', 17, struct mapping_query)
enum { MAPPING_IS_SHARED = 8 };

/* Sets errno to ENOTTY if the kernel has no such query. */
static bool query_is_private(int maps, uintptr_t known, uintptr_t end) {
    bool private = true;
    errno = 0;
    while (private && known < end) {
        struct mapping_query query = {.size = sizeof query, .address = known};
        private = ioctl(maps, MAPPING_QUERY, &query) == 0 &&
                  !(query.mapping_flags & MAPPING_IS_SHARED) && !query.inode;
        known = query.end;
    }
    return private;
}

/* Searches the text of /proc/self/maps. A line is "7f0000000000-7f0000021000 rw-p 00000000 00:00
 * 0". The last number is the inode of a file or of shared memory, and 0 for private memory. A line
 * costs 0.3 us, so the search ends after MOST_LINES lines: with more mappings it would take longer
 * than a registration by HIP. */
enum { MOST_LINES = 1024 };
static bool search_is_private(FILE *maps, uintptr_t known, uintptr_t end) {
    char line[PATH_MAX + 128], *rest;
    for (int i = 0; known < end && i < MOST_LINES && fgets(line, sizeof line, maps); i++) {
        const uintptr_t first = strtoul(line, &rest, 16), last = strtoul(rest + 1, &rest, 16);
        unsigned long inode;
        char sharing;
        if (known < first || known >= last)
            continue;
        if (sscanf(rest, " %*3c%c %*s %*s %lu", &sharing, &inode) != 2 || sharing != 'p' || inode)
            break;
        known = last;
    }
    return known >= end;
}

bool pages_are_private(const void *address, size_t bytes) {
    const uintptr_t begin = (uintptr_t)address, end = begin + bytes;
    FILE *maps = fopen("/proc/self/maps", "re");
    if (!maps)
        return false;
    const bool private = query_is_private(fileno(maps), begin, end) ||
                         (errno == ENOTTY && search_is_private(maps, begin, end));
    fclose(maps);
    return private;
}
