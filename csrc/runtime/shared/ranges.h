/* Tells which addresses belong to device memory, managed memory and registered host memory that
 * this library has obtained.
 *
 * HIP can tell what a pointer is, for 0.1 to 1.2 µs (it walks the process's mappings for an unknown
 * pointer). This table answers in 10 ns, without a lock. All other addresses are unknown here: a
 * module's globals, other libraries' memory and pageable memory. */
#ifndef MGPU_RT_RANGES_H
#define MGPU_RT_RANGES_H

#include "atomics.h"

#include <stddef.h>
#include <stdint.h>

enum range_kind {
    RANGE_NONE,       /* no memory of this library's in these bytes */
    RANGE_DEVICE,     /* hipMalloc */
    RANGE_MANAGED,    /* hipMallocManaged */
    RANGE_REGISTERED, /* hipHostRegister */
    RANGE_IDLE,       /* registered, but the program has unregistered it (registrations.h) */
    RANGE_MIXED,      /* partly inside, or not known: HIP has to be asked */
};

/* A range lies in the entry of its memory, which is never freed and never changes its address. */
struct range {
    struct range *left, *right;
    uintptr_t begin, end;
    uintptr_t kind; /* enum range_kind */
};

/* Adds a range. The caller holds tables_lock, as for ranges_remove; nothing is allocated. A range
 * that overlaps older ones ends those: HIP hands out or registers only bytes that are free. */
void ranges_add(struct range *range, uintptr_t begin, size_t bytes, enum range_kind kind);
/* Removes the range that starts at `begin`, if any. */
void ranges_remove(uintptr_t begin);

/* Returns the kind of `bytes` bytes from an address on. Lock-free. */
enum range_kind ranges_find(const void *address, size_t bytes);

/* Returns the begin of a range that shares bytes with these; NULL if none does. Needs tables_lock.
 */
void *ranges_begin(const void *address, size_t bytes);

/* Counts the calls that may have changed what an address is: while the count stays, HIP's answer
 * holds, if no other code calls HIP. */
extern uint64_t ranges_changes;
static inline uint64_t ranges_now(void) {
    return load_acquire(&ranges_changes);
}
static inline void ranges_change(void) {
    fetch_add_acq_rel(&ranges_changes, 1);
}

#endif
