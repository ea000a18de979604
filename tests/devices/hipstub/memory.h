/* The memory that the stub knows: device blocks, pinned host blocks, registered host ranges. All
 * memory is host memory. All functions need the stub's lock. */
#ifndef HIPSTUB_MEMORY_H
#define HIPSTUB_MEMORY_H

#include "../../../csrc/hip_abi.h"

#include <stdbool.h>

enum memory_kind {
    MEMORY_DEVICE,
    MEMORY_EXTENDED, /* hipExtMallocWithFlags': not among those that hipstub_live counts */
    MEMORY_MANAGED,
    MEMORY_PINNED,
    MEMORY_REGISTERED,
    MEMORY_GLOBAL, /* a module's */
    MEMORY_FREED,  /* was a device block */
    MEMORY_UNKNOWN,
};

struct block {
    char *address;
    size_t bytes;
    enum memory_kind kind;
    int device;
    unsigned flags;
    uint64_t number;   /* no other block ever has it */
    struct pins *pins; /* of a registered range, or NULL (pins.h) */
};

/* Returns the block that an address lies in, NULL if it lies in none. */
const struct block *memory_find(const void *address);

/* Returns whether a device may access the range: 0 no such block (pageable memory), 1 yes, -1 freed
 * or past the end of its block, counted as misuse of `function`. */
int memory_check(const char *function, const void *address, size_t bytes);

/* Copies as the device does: registered memory by its pinned pages. Takes the lock. */
void memory_copy(void *to, const void *from, size_t bytes);

/* Makes zeroed memory on its module's device, which is no allocation, and ends it. */
void *memory_add_global(size_t bytes, int device);
void memory_drop_global(void *address);

/* Ends all objects of a device, as hipDeviceReset does; with several devices AMD's 5.2.3 to 7.2.4
 * keep pinned and managed memory. */
void memory_reset(int device);

int64_t memory_live_blocks(void);
int64_t memory_live_bytes(void);
int64_t memory_live_registrations(void);

#endif
