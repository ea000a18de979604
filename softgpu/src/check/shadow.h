/* The checker's map of memory: each allocation with its requested size, and its fate.
 *
 * A block stays in the map after its free, so that a report on a later access can name the free.
 * Addresses in no block belong to HIP, to code objects or to a program that calls HIP itself.
 * Addresses in no block are unknown, so an access there is a fault only if they are not mapped.
 *
 * A block has cells for its dwords, which find races (race.h), and bits that tell which of its bits
 * were written (defined.h).
 *
 * Every function may be called from any thread. */
#ifndef SOFTGPU_CHECK_SHADOW_H
#define SOFTGPU_CHECK_SHADOW_H

#include "place.h"

#include <stdbool.h>
#include <stdint.h>

struct softgpu_cell;
struct softgpu_past;

struct softgpu_block {
    uint64_t va, size;          /* the requested ones, in bytes */
    struct softgpu_cell *cells; /* of the block's dwords (race.h), or NULL */
    struct softgpu_past *past;  /* the block's ops (past.h), or NULL */
    uint8_t *bits;   /* the defined bits of the block's bytes (defined.h), or NULL: all are */
    bool registered; /* host memory that the device reaches at va */
    bool freed;
    unsigned number; /* number of the allocation, counted from 1 */
    struct softgpu_place made, ended;
};

enum softgpu_verdict {
    SOFTGPU_ALLOWED,
    SOFTGPU_OUTSIDE, /* outside the block */
    SOFTGPU_FREED,   /* inside a freed block */
    SOFTGPU_UNMAPPED /* and no block is near */
};

/* The verdict on an access. */
struct softgpu_finding {
    enum softgpu_verdict verdict;
    uint64_t low, high;         /* SOFTGPU_ALLOWED: so are all accesses within [low, high) */
    struct softgpu_cell *cells; /* SOFTGPU_ALLOWED: of the dwords from `low`, or NULL */
    struct softgpu_past *past;  /* SOFTGPU_ALLOWED: of the block, or NULL */
    uint8_t *bits;              /* of the bytes from `low`, or NULL */
    bool registered;            /* memory of the host */
    struct softgpu_block block;
    bool has_block;
};

/* Finds the block that holds this address; returns false if there is none. */
bool softgpu_shadow_holds(uint64_t va, struct softgpu_block *block);

struct softgpu_finding softgpu_shadow_find(uint64_t va, uint64_t bytes);

/* Changes with the map: a verdict of softgpu_shadow_find may be kept until then. */
uint64_t softgpu_shadow_generation(void);

/* The kinds of memory. The host may write to MEMORY_SHARED and MEMORY_REGISTERED unseen: their bits
 * count as defined. */
enum softgpu_block_kind { MEMORY_DEVICE, MEMORY_SHARED, MEMORY_REGISTERED };

void softgpu_shadow_add(uint64_t va, uint64_t size, enum softgpu_block_kind kind,
                        const struct softgpu_place *place);

/* Makes the bits of memory that was never written. Returns NULL if bits are not followed
 * (defined_memory.c). */
uint8_t *softgpu_bits_begin(uint64_t size);
void softgpu_bits_end(uint8_t *bits, uint64_t size);

enum softgpu_end { SOFTGPU_LIVE, SOFTGPU_ENDED_BEFORE, SOFTGPU_NOT_ITS_BEGIN, SOFTGPU_NO_BLOCK };

/* Judges a free of this address: of a live block, of a freed one, or of none that begins there.
 * *block: the block, if there is one. */
enum softgpu_end softgpu_shadow_judge(uint64_t va, struct softgpu_block *block);

/* Ends the live block that begins there, as it is freed or unregistered. */
void softgpu_shadow_end(uint64_t va, const struct softgpu_place *place);

#endif
