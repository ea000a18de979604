/* Which addresses belong to device memory, managed memory and registered host memory of this
 * library's making.
 *
 * HIP can be asked what a pointer is, for 0.1 to 1.2 µs (it walks the process's mappings for one
 * that it does not know); this table answers in 10 ns, without a lock. What it does not know is
 * pageable host memory only where nobody else calls HIP (exclusive.h). */
#ifndef MGPU_RT_RANGES_H
#define MGPU_RT_RANGES_H

#include <stddef.h>
#include <stdint.h>

enum range_kind {
    RANGE_NONE,       /* nothing of ours in these bytes */
    RANGE_DEVICE,     /* hipMalloc */
    RANGE_MANAGED,    /* hipMallocManaged */
    RANGE_REGISTERED, /* hipHostRegister */
    RANGE_MIXED,      /* partly inside, or not known: HIP has to be asked */
};

/* Both need registry_lock. A range that overlaps another makes every later answer RANGE_MIXED. */
void ranges_add(uintptr_t begin, size_t bytes, enum range_kind kind);
/* The range that begins there; nothing if none does. */
void ranges_remove(uintptr_t begin);

/* What `bytes` bytes from an address on are. Lock-free. */
enum range_kind ranges_find(const void *address, size_t bytes);

#endif
