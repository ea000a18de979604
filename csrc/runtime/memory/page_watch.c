#include "memory/page_watch.h"
#include "atomics.h"
#include "proof.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

enum { STACK = 64 << 10, EVENTS = 16 };

static int events = -1; /* the userfaultfd */
static uint64_t reads;  /* odd from before the read of an event until `changed` has returned */
static void (*tell)(uintptr_t begin, size_t bytes);

/* ---- reading ---- */

static void tell_of(const struct uffd_msg *event) {
    if (event->event == UFFD_EVENT_REMAP)
        PROOF_STEP(moved_pages_are_told, tell(event->arg.remap.from, event->arg.remap.len));
    else if (event->event == UFFD_EVENT_UNMAP)
        PROOF_STEP(unmapped_pages_are_told,
                   tell(event->arg.remove.start, event->arg.remove.end - event->arg.remove.start));
    else if (event->event == UFFD_EVENT_REMOVE)
        PROOF_STEP(dropped_pages_are_told,
                   tell(event->arg.remove.start, event->arg.remove.end - event->arg.remove.start));
}

/* Reads the events. While an event is unread, the kernel's answer makes page_watch_settled return
 * false. Before the thread reads the event, `reads` becomes odd, so page_watch_settled still
 * returns false. */
static void *read_events(void *unused) {
    (void)unused;
    for (;;) {
        struct uffd_msg read_ones[EVENTS];
        struct pollfd wait = {.fd = events, .events = POLLIN};
        (void)poll(&wait, 1, -1);
        (void)fetch_add_seq_cst(&reads, 1);
        const ssize_t bytes = read(events, read_ones, sizeof read_ones);
        for (ssize_t i = 0; i < bytes / (ssize_t)sizeof *read_ones; i++)
            tell_of(&read_ones[i]);
        (void)fetch_add_seq_cst(&reads, 1);
    }
    return NULL;
}

/* Starts the thread that reads events, and blocks all signals in it. The thread lives as long as
 * the process: if the program unmaps watched pages while no thread reads events, the program hangs.
 */
static bool start_reading(void) {
    sigset_t all, before;
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool created = pthread_create(&thread, &attributes, read_events, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return created;
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

const char *page_watch_open(void (*changed)(uintptr_t begin, size_t bytes)) {
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
    events = opened;
    if (ioctl(opened, UFFDIO_API, &api) == 0 && start_reading())
        return NULL;
    events = -1;
    close(opened);
    return "userfaultfd does not report unmapped pages here";
}

void page_watch_forked(void) {
    if (events >= 0)
        close(events);
    events = -1;
}

/* ---- ranges ---- */

bool page_watch_add(const void *address, size_t bytes) {
    const uintptr_t begin = page_of((uintptr_t)address);
    const uintptr_t end = page_of((uintptr_t)address + bytes + page_bytes - 1);
    struct uffdio_register range = {.range = {begin, end - begin}, .mode = UFFDIO_REGISTER_MODE_WP};
    return events >= 0 && ioctl(events, UFFDIO_REGISTER, &range) == 0;
}

void page_watch_remove(uintptr_t begin, size_t bytes) {
    struct uffdio_range range = {begin, bytes};
    if (events >= 0 && bytes)
        (void)ioctl(events, UFFDIO_UNREGISTER, &range);
}

/* The ioctl UFFDIO_WRITEPROTECT returns EAGAIN if a mapping is changing, or if the event of a
 * change is unread. Otherwise the ioctl checks its arguments, and returns EINVAL for zero bytes. So
 * EINVAL means that no change is pending (userfaultfd_writeprotect and mmap_changing in Linux). */
bool page_watch_settled(void) {
    struct uffdio_writeprotect nothing = {.mode = 0};
    const uint64_t before = load_seq_cst(&reads);
    const bool quiet =
        events >= 0 && ioctl(events, UFFDIO_WRITEPROTECT, &nothing) != 0 && errno == EINVAL;
    return quiet && PROOF(no_event_is_in_hand, before % 2 == 0 && load_seq_cst(&reads) == before);
}

/* A line of /proc/self/maps is "7f0000000000-7f0000021000 rw-p 00000000 00:00 0". The last number
 * is the inode of a file or of shared memory, and 0 for private memory. The search takes 1 µs for
 * each mapping, and is faster than a registration by HIP. */
bool pages_are_private(const void *address, size_t bytes) {
    char line[PATH_MAX + 128], *rest;
    uintptr_t known = (uintptr_t)address;
    const uintptr_t end = known + bytes;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (known < end && maps && fgets(line, sizeof line, maps)) {
        const uintptr_t first = strtoul(line, &rest, 16), last = strtoul(rest + 1, &rest, 16);
        unsigned long inode;
        char sharing;
        if (known < first || known >= last)
            continue;
        if (sscanf(rest, " %*3c%c %*s %*s %lu", &sharing, &inode) != 2 || sharing != 'p' || inode)
            break;
        known = last;
    }
    if (maps)
        fclose(maps);
    return known >= end;
}
