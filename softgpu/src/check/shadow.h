/* Maintains the checker's memory map, which records each allocation's requested size and whether
 * the allocation was freed.
 *
 * A freed block stays in the map, so that a report on a later access can name the call that freed
 * the block. Addresses outside all blocks belong to HIP, to code objects, or to a program that
 * calls HIP itself. An access outside all blocks is a fault only if the address is not mapped.
 *
 * A block has a cell for each dword, to find races (race.h), and shadow bits that record which bits
 * were written (defined.h).
 *
 * Every function may be called from any thread. */
#ifndef SOFTGPU_CHECK_SHADOW_H
#define SOFTGPU_CHECK_SHADOW_H

#include "place.h"

#include <stdbool.h>
#include <stdint.h>

struct softgpu_cells;
struct softgpu_past;

struct softgpu_block {
    uint64_t va, size;           /* requested address and size in bytes */
    struct softgpu_cells *cells; /* cells of the block's dwords (race.h), or NULL */
    struct softgpu_past *past;   /* the block's ops (past.h), or NULL */
    uint8_t *bits;   /* the block's defined bits (defined.h), or NULL if all bits are defined */
    bool registered; /* host memory that the device accesses at va */
    bool shared;     /* memory that the host accesses at va, too (host_shared) */
    bool freed;
    unsigned number; /* number of the allocation, counted from 1; 0: of the host's malloc */
    uint32_t op;     /* the allocation's op (order.h), or 0 */
    struct softgpu_place made, ended;
};

enum softgpu_verdict {
    SOFTGPU_ALLOWED,
    SOFTGPU_OUTSIDE, /* outside the block */
    SOFTGPU_FREED,   /* inside a freed block */
    SOFTGPU_UNMAPPED /* unmapped, and no block is near */
};

/* The verdict on an access. */
struct softgpu_finding {
    enum softgpu_verdict verdict;
    uint64_t low, high;          /* SOFTGPU_ALLOWED: all accesses within [low, high) are allowed */
    struct softgpu_cells *cells; /* SOFTGPU_ALLOWED: the cells for memory from `low` on, or NULL */
    struct softgpu_past *past;   /* SOFTGPU_ALLOWED: the block's ops, or NULL */
    uint32_t op;                 /* SOFTGPU_ALLOWED: the op of the block's allocation, or 0 */
    uint8_t *bits;               /* the defined bits for memory from `low` on, or NULL */
    bool registered;             /* registered host memory */
    bool shared;                 /* host_shared memory */
    struct softgpu_block block;
    bool has_block;
};

/* Finds the block that contains this address; returns false if no block contains it. */
bool softgpu_shadow_holds(uint64_t va, struct softgpu_block *block);

struct softgpu_finding softgpu_shadow_find(uint64_t va, uint64_t bytes);

/* Returns a number that changes whenever the map changes. Verdicts of softgpu_shadow_find stay
 * valid while the number is unchanged. */
uint64_t softgpu_shadow_generation(void);

/* The kinds of memory. The host may write to shared and registered memory without the checker's
 * knowledge, so all bits of such memory count as defined. */
enum softgpu_block_kind { MEMORY_DEVICE, MEMORY_SHARED, MEMORY_REGISTERED };

/* Adds a block. `op`: the allocation's op, or 0. */
void softgpu_shadow_add(uint64_t va, uint64_t size, enum softgpu_block_kind kind,
                        const struct softgpu_place *place, uint32_t op);

/* Allocates the defined bits of memory that was never written. Returns NULL if defined bits are not
 * tracked (defined_memory.c). */
uint8_t *softgpu_bits_begin(uint64_t size);
void softgpu_bits_end(uint8_t *bits, uint64_t size);

enum softgpu_end { SOFTGPU_LIVE, SOFTGPU_ENDED_BEFORE, SOFTGPU_NOT_ITS_BEGIN, SOFTGPU_NO_BLOCK };

/* Returns whether a live block or a freed block begins at this address, or whether the address lies
 * inside a block or in no block. If a block contains the address, copies the block to *block. */
enum softgpu_end softgpu_shadow_judge(uint64_t va, struct softgpu_block *block);

/* Marks the live block that begins at this address as freed or unregistered. */
void softgpu_shadow_end(uint64_t va, const struct softgpu_place *place);

#endif
