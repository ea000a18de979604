/* Reports when the pages under an address are unmapped or moved.
 *
 * The watch uses userfaultfd(2) in user mode, which needs no privileges. The library registers a
 * watched range for write protection, but protects no page, so no access to the range causes a
 * fault. The kernel sends an event when pages are unmapped, moved (mremap) or dropped
 * (MADV_DONTNEED, MADV_REMOVE). The thread that drops or moves pages waits 10 to 60 us, until a
 * thread of this library has read the event.
 *
 * Without an event, the pages may still have changed: munmap drops the pages before the kernel
 * sends the event. So another thread may map new pages at the address before this library has read
 * the event. page_watch_settled tells callers whether events may be unread. */
#ifndef MGPU_RT_PAGE_WATCH_H
#define MGPU_RT_PAGE_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Starts the thread that reads events and calls `changed` with the pages of each event. `changed`
 * may take tables_lock. `changed` must not call HIP or an allocator, because a call that unmaps
 * memory would wait for the thread that runs `changed`. Returns NULL, or the reason why this
 * process cannot watch pages. Called once. */
const char *page_watch_open(void (*changed)(uintptr_t begin, size_t bytes));

/* Begins to watch the pages that hold these bytes. Returns false if the kernel cannot watch the
 * pages, for example pages of a file, huge pages, or pages that the program watches itself. */
bool page_watch_add(const void *address, size_t bytes);

/* Ends the watch of a range of whole pages. */
void page_watch_remove(uintptr_t begin, size_t bytes);

/* Returns true if `changed` was called for every change that began before this call. Costs one
 * system call, 0.5 us. Returns false if a change is in progress, or if the watch is closed. */
bool page_watch_settled(void);

/* Closes the watch in a forked child, because the kernel does not watch the child's pages. */
void page_watch_forked(void);

/* Returns true if all these bytes lie in private memory without a file. Pages of files and of
 * shared memory are replaced without an event. When a file is truncated, the kernel also drops
 * private copies of the file's pages without an event. */
bool pages_are_private(const void *address, size_t bytes);

static const size_t page_bytes = 4096; /* x86-64 */
static inline uintptr_t page_of(uintptr_t address) {
    return address & ~(uintptr_t)(page_bytes - 1);
}

#endif
