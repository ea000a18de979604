/* The checker's map of memory: each allocation as the program asked for it, and what became of it.
 *
 * A block stays in the map after its free, so that a later access finds who freed it. Addresses
 * in no block belong to HIP, to code objects or to a program that calls HIP itself. Nothing is
 * known of them, so an access is a fault only where nothing is mapped.
 *
 * A block has cells for its dwords, by which races are found (race.h), and bits that say what of it
 * was written (defined.h).
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
    uint64_t va, size;          /* as asked for, in bytes */
    struct softgpu_cell *cells; /* of its dwords (race.h), or NULL */
    struct softgpu_past *past;  /* its ops (past.h), or NULL */
    uint8_t *bits;              /* the defined ones of its bytes (defined.h), or NULL: all are */
    bool registered;            /* host memory that the device reaches at va */
    bool freed;
    unsigned number; /* of the allocation, from 1 */
    struct softgpu_place made, ended;
};

enum softgpu_verdict {
    SOFTGPU_ALLOWED,
    SOFTGPU_OUTSIDE, /* of the block */
    SOFTGPU_FREED,   /* the block was */
    SOFTGPU_UNMAPPED /* and there is no block nearby */
};

/* The answer about an access. */
struct softgpu_finding {
    enum softgpu_verdict verdict;
    uint64_t low, high;         /* SOFTGPU_ALLOWED: so are accesses within [low, high) */
    struct softgpu_cell *cells; /* SOFTGPU_ALLOWED: of the dwords from `low`, or NULL */
    struct softgpu_past *past;  /* SOFTGPU_ALLOWED: of the block, or NULL */
    uint8_t *bits;              /* of the bytes from `low`, or NULL */
    bool registered;            /* memory of the host */
    struct softgpu_block block;
    bool has_block;
};

/* Finds the block that holds this address; false if there is none. */
bool softgpu_shadow_holds(uint64_t va, struct softgpu_block *block);

struct softgpu_finding softgpu_shadow_find(uint64_t va, uint64_t bytes);

/* Changes with the map: what softgpu_shadow_find allowed may be kept as long as it does not. */
uint64_t softgpu_shadow_generation(void);

/* Kinds of memory. The host may write to MEMORY_SHARED and MEMORY_REGISTERED unseen: both are
 * defined. */
enum softgpu_block_kind { MEMORY_DEVICE, MEMORY_SHARED, MEMORY_REGISTERED };

void softgpu_shadow_add(uint64_t va, uint64_t size, enum softgpu_block_kind kind,
                        const struct softgpu_place *place);

/* Makes the bits of memory that nobody wrote to. Returns NULL if they are not wanted
 * (defined_memory.c). */
uint8_t *softgpu_bits_begin(uint64_t size);
void softgpu_bits_end(uint8_t *bits, uint64_t size);

enum softgpu_end { SOFTGPU_LIVE, SOFTGPU_ENDED_BEFORE, SOFTGPU_NOT_ITS_BEGIN, SOFTGPU_NO_BLOCK };

/* Judges a free of this address: of a live block, of one that was freed, or of none that begins
 * there. *block: the block, unless there is none. */
enum softgpu_end softgpu_shadow_judge(uint64_t va, struct softgpu_block *block);

/* Ends the live block that begins there: it is freed or unregistered. */
void softgpu_shadow_end(uint64_t va, const struct softgpu_place *place);

#endif
