/* Detects races within a launch: unordered accesses of two waves to one byte, if at least one
 * access writes. Accesses of one wave are ordered. A barrier orders the accesses of a workgroup's
 * waves. LLVM's acquire is an atomic access that returns a value, followed by a cache invalidation.
 * After a workgroup's acquire, the checker reports no more races between this workgroup and others.
 *
 * Each dword of an allocation, and of workgroup memory, has a cell that records the dword's last
 * writer and last reader. Several threads may use an allocation's cells at once; only one thread at
 * a time runs a workgroup and uses its cells.
 *
 * An allocation's cell also records the earlier launches that wrote and read the dword. A later
 * launch races with these earlier launches unless a stream, event or wait of the program orders the
 * launches (order.h). */
#ifndef SOFTGPU_CHECK_RACE_H
#define SOFTGPU_CHECK_RACE_H

#include "../isa/memory.h"
#include "order.h"

/* The last access of one wave to a dword; `bytes` is 0 if no wave has accessed the dword. */
struct softgpu_stamp {
    uint64_t group : 24, wave : 4,
        epoch : 16, /* the number of barriers that the workgroup passed before the access */
        bytes : 4,  /* a bit for each byte, lowest first */
        kind : 2,   /* enum access_kind */
        place : 14; /* distance in dwords from the kernel's entry, or NO_PLACE */
};

/* An earlier launch's last access to a dword; `bytes` is 0 if there was no such access. */
struct softgpu_trace {
    uint64_t op : 32, bytes : 4, kind : 2, place : 14;
};

/* All stamps of a cell belong to the latest launch that accessed the dword. */
struct softgpu_cell {
    struct softgpu_stamp write, read[2];
    uint32_t launch, value; /* `value`: the dword that was written */
    struct softgpu_trace past_write, past_read[2];
};

/* Returns cells for the dwords of [va, va + size), or NULL if memory is exhausted;
 * softgpu_cells_end releases them. */
struct softgpu_cell *softgpu_cells_begin(uint64_t va, uint64_t size);
void softgpu_cells_end(struct softgpu_cell *cells, uint64_t va, uint64_t size);
/* Clears the cells without unmapping them, because other threads may still read them. */
void softgpu_cells_clear(struct softgpu_cell *cells, uint64_t va, uint64_t size);

/* A wave's access that conflicts with an earlier access. */
struct softgpu_conflict {
    int lane;
    uint64_t va;
    struct softgpu_stamp other;
    bool found;
    uint32_t op; /* the conflicting op (`other` is then unset); 0: this launch */
    uint64_t pc; /* the address of the conflicting instruction; 0: unknown */
    bool other_writes;
};

/* Records in `cells` that the lanes of `mask` access memory at `va`. The first cell belongs to the
 * dword at `begin`. A scalar access counts as an access of lane 0. If `clock` is given, also
 * compares the accesses with earlier launches that are not over according to `clock`. */
struct softgpu_conflict softgpu_race_global(struct wave *w, const struct inst *i,
                                            struct softgpu_cell *cells, uint64_t begin,
                                            const uint64_t *va, uint64_t mask, unsigned bytes,
                                            const struct softgpu_clock *clock);
/* Compares a copy's or fill's access to [va, va + bytes) with launches that are not over according
 * to `clock`. */
struct softgpu_conflict softgpu_race_move(struct softgpu_cell *cells, uint64_t begin, uint64_t va,
                                          uint64_t bytes, bool writes,
                                          const struct softgpu_clock *clock);
/* Returns the op of the last launch that wrote the byte at `va`, and stores the address of the
 * instruction in *pc (0: unknown). Returns 0 if no launch has written the byte. */
uint32_t softgpu_race_writer(const struct softgpu_cell *cells, uint64_t begin, uint64_t va,
                             uint64_t *pc);
/* Records accesses to workgroup memory. */
struct softgpu_conflict softgpu_race_lds(struct wave *w, const struct inst *i,
                                         const uint32_t *offset, uint64_t mask, unsigned bytes);
/* Returns the number of a dispatch's op (launch.h). Sets d->clock; d->clock is NULL if the order of
 * the op is unknown. */
uint32_t softgpu_launch_of(struct dispatch *d);
/* Notes that a launch begins; `hips`: the launch runs one of HIP's own kernels, and the kernel's
 * accesses count as accesses of the program's call. */
void softgpu_race_launch(struct dispatch *d, bool hips);
/* Notes that a wave invalidates its caches, so that its next loads read the stores of other
 * waves. */
void softgpu_race_acquire(struct wave *w);

/* Returns whether a stamp has a place, and stores the instruction's address in *pc. */
bool softgpu_stamp_place(const struct dispatch *d, struct softgpu_stamp stamp, uint64_t *pc);

#endif
