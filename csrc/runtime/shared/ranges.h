/* Maps addresses to the device memory, managed memory and registered host memory that this library
 * has obtained.
 *
 * HIP can describe a pointer in 0.1 to 1.2 µs (for an unknown pointer, HIP searches the process's
 * mappings). This table answers in 10 ns, without a lock. The time
 * does not depend on the number of ranges if a range begins at the address. This table does not
 * contain a module's globals, other libraries' memory or pageable memory. */
#ifndef MGPU_RT_RANGES_H
#define MGPU_RT_RANGES_H

#include "atomics.h"

enum range_kind {
    RANGE_NONE,       /* none of these bytes is memory of this library */
    RANGE_DEVICE,     /* hipMalloc */
    RANGE_MANAGED,    /* hipMallocManaged */
    RANGE_REGISTERED, /* hipHostRegister */
    RANGE_IDLE,       /* registered in HIP, but the program has unregistered it (registrations.h) */
    RANGE_MIXED,      /* this library owns only some of the bytes, or cannot tell now: HIP must be
                       * asked */
};

/* A range is part of an entry that is never freed or moved. The program asked for the bytes up to
 * used_end. HIP allocated the bytes up to `end`, and no other range contains any of them. */
struct range {
    struct range *left, *right;
    struct range **bucket;    /* leads to the ranges whose beginnings have one hash */
    struct range *next_alike; /* links these ranges */
    uintptr_t begin, used_end, end;
    uintptr_t kind; /* enum range_kind */
};

/* Adds a range. The caller of ranges_add and ranges_remove holds tables_lock; neither function
 * allocates memory. ranges_add removes older ranges that overlap the new range. Those ranges are
 * out of date, because HIP returns or registers only free bytes. */
void ranges_add(struct range *range, uintptr_t begin, size_t bytes, enum range_kind kind);
/* Removes the range that starts at `begin`, if there is one. */
void ranges_remove(uintptr_t begin);

/* Changes how many bytes of a range the program asked for; at most the range's size. Lock-free. */
static inline void range_use(struct range *range, size_t bytes) {
    store_relaxed(&range->used_end, load_relaxed(&range->begin) + bytes);
}
static inline size_t range_used(const struct range *range) {
    return load_relaxed(&range->used_end) - load_relaxed(&range->begin);
}

/* Returns the kind of the `bytes` bytes at an address. Returns RANGE_MIXED if the program did not
 * ask for all bytes of them. Lock-free. */
enum range_kind ranges_find(const void *address, size_t bytes);

/* Returns `bytes`, or more if they end in the part for which the program did not ask. The result
 * is then the least count of bytes that ends outside the range. Lock-free.
 */
size_t ranges_past(const void *address, size_t bytes);

/* Returns the start of a range that overlaps the `bytes` bytes at an address; NULL if there is no
 * such range. Needs tables_lock. */
void *ranges_begin(const void *address, size_t bytes);

/* Counts the calls that may have changed the memory map. While the count is unchanged, HIP's
 * earlier answer remains valid if no other code calls HIP. */
extern uint64_t ranges_changes;
static inline uint64_t ranges_now(void) {
    return load_acquire(&ranges_changes);
}
static inline void ranges_change(void) {
    fetch_add_acq_rel(&ranges_changes, 1);
}

#endif
