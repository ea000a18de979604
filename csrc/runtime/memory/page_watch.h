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
 * the event. page_watch_settled tells callers whether events may be unread.
 *
 * The program may close the watch's descriptor, and may then use the descriptor's number for a file
 * of its own. So the thread that reads events has a descriptor in a table of its own, which the
 * program cannot close. Other threads use the program's table. They check the descriptor, and the
 * watch is lost once the descriptor is gone. */
#ifndef MGPU_RT_PAGE_WATCH_H
#define MGPU_RT_PAGE_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static const size_t page_bytes = 4096; /* x86-64 */
static inline uintptr_t page_of(uintptr_t address) {
    return address & ~(uintptr_t)(page_bytes - 1);
}

/* Starts the thread that reads events. The thread records the pages of each event, and then calls
 * `changed`. `changed` must take no lock, must not wait, and must not call HIP or an
 * allocator. A thread that unmaps memory waits for the thread that runs `changed`, and may hold any
 * lock. Returns NULL, or the reason why this process cannot watch pages. Called once. */
const char *page_watch_open(void (*changed)(void));

/* Begins to watch the pages that hold these bytes. Returns false if the kernel cannot watch the
 * pages, for example pages of a file, huge pages, or pages that the program watches itself. */
bool page_watch_add(const void *address, size_t bytes);

/* Ends the watch of a range of whole pages. */
void page_watch_remove(uintptr_t begin, size_t bytes);

/* Returns true if every change that began before this call is recorded. Costs two system calls, 0.7
 * us. Returns false if a change is in progress, or if the watch is closed or lost. */
bool page_watch_settled(void);

/* Returns true once a call above has found that the program has closed the watch's descriptor. The
 * thread of events still reads events, so that no thread waits for ever. */
bool page_watch_is_lost(void);

/* Closes the watch in a forked child, because the kernel does not watch the child's pages. */
void page_watch_forked(void);

/* Returns true if all these bytes lie in private memory without a file. Pages of files and of
 * shared memory are replaced without an event. When a file is truncated, the kernel also drops
 * private copies of the file's pages without an event. Before Linux 6.11, returns false if the
 * process has many mappings below the address. */
bool pages_are_private(const void *address, size_t bytes);

/* How many ranges the library may watch. A watched range may split a mapping of the program into
 * three, and the kernel refuses a process more than 65,530 mappings (vm.max_map_count). */
enum { MOST_WATCHED_RANGES = 2000 };

/* ---- the recorded changes ---- */

/* Returns true if every recorded change has been applied. Lock-free. */
bool page_changes_are_applied(void);

/* Calls `apply` with each recorded change that has not been applied. If changes were lost because
 * the record is full, calls `apply` with all addresses. Needs tables_lock. */
void page_changes_apply(void (*apply)(uintptr_t begin, uintptr_t end));

/* Returns true if a drop of some of these pages was ever recorded. May also return true for other
 * pages, because the record is coarse. Lock-free. */
bool page_changes_had_drop(const void *address, size_t bytes);

#endif
