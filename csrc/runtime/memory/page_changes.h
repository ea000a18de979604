/* Changes of watched pages: a record that the thread which reads events writes, and that other
 * threads apply to the registrations.
 *
 * The kernel keeps a thread that unmaps watched pages waiting until the thread of events has read
 * the event. The waiting thread may hold any lock of the process: a signal handler may unmap pages
 * while its thread is inside this library. So the thread of events takes no lock, and never waits.
 */
#ifndef MGPU_RT_PAGE_CHANGES_H
#define MGPU_RT_PAGE_CHANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static const size_t page_bytes = 4096; /* x86-64 */
static inline uintptr_t page_of(uintptr_t address) {
    return address & ~(uintptr_t)(page_bytes - 1);
}

/* Records that these pages were replaced. Only the thread of events calls the function. */
void page_changes_note(uintptr_t begin, uintptr_t end);

/* Records a change, and that a thread is about to drop these pages (madvise). The kernel reports a
 * drop before it drops the pages, and does not report the end of the drop. Only the thread of
 * events calls the function. */
void page_changes_note_drop(uintptr_t begin, uintptr_t end);

/* Returns true if every recorded change has been applied. Lock-free. */
bool page_changes_are_applied(void);

/* Calls `apply` with each recorded change that has not been applied. If changes were lost because
 * the record is full, calls `apply` with all addresses. Needs tables_lock. */
void page_changes_apply(void (*apply)(uintptr_t begin, uintptr_t end));

/* Returns true if a drop of some of these pages was ever recorded. May also return true for other
 * pages, because the record is coarse. Lock-free. */
bool page_changes_had_drop(const void *address, size_t bytes);

#endif
