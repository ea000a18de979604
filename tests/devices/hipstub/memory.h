/* The memory that the stub tracks: device blocks, pinned host blocks, registered host ranges. All
 * of this memory is host memory. Callers of these functions hold the stub's lock. */
#ifndef HIPSTUB_MEMORY_H
#define HIPSTUB_MEMORY_H

#include "../../../csrc/hip_abi.h"

#include <stdbool.h>

enum memory_kind {
    MEMORY_DEVICE,
    MEMORY_EXTENDED, /* allocated with hipExtMallocWithFlags; hipstub_live does not count such a
                        block */
    MEMORY_MANAGED,
    MEMORY_PINNED,
    MEMORY_REGISTERED,
    MEMORY_GLOBAL, /* a module's */
    MEMORY_FREED,  /* freed memory */
    MEMORY_UNKNOWN,
};

struct block {
    char *address;
    size_t bytes;
    enum memory_kind kind;
    int device;
    unsigned flags;
    uint64_t number;   /* unique among all blocks ever created */
    struct pins *pins; /* the pins of a registered range, or NULL (pins.h) */
};

/* Returns the block that contains an address, or NULL. */
const struct block *memory_find(const void *address);

/* Returns 1 if a device may access the range, and 0 if a part is pageable. For a freed block or a
 * range beyond its block, returns -1 and counts a misuse of `function`. */
int memory_check(const char *function, const void *address, size_t bytes);

/* Copies bytes, and accesses registered memory through its pinned pages, as a device does. Takes
 * the lock. */
void memory_copy(void *to, const void *from, size_t bytes);

/* Creates and frees the memory of a module's global. The memory is initially zero, and hipstub_live
 * does not count the memory. */
void *memory_add_global(size_t bytes, int device);
void memory_drop_global(void *address);

/* Frees all memory of a device, as hipDeviceReset does. If the stub has several devices, pinned,
 * registered and managed memory survives, as in AMD's HIP 5.2.3 to 7.2.4. */
void memory_reset(int device);

/* Lets hipMalloc have the memory of earlier frees, as a stream was found idle (HIPSTUB_LATE). */
void memory_stream_is_idle(void);

int64_t memory_live_blocks(void);
int64_t memory_live_bytes(void);
int64_t memory_live_registrations(void);

#endif
