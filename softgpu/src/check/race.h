/* Detects races within a launch. Two waves race if they access one byte without order, and at least
 * one access writes. Accesses of one wave are ordered. A barrier orders the accesses of a
 * workgroup's waves. In LLVM's code, an acquire is an atomic access that returns a value, followed
 * by a cache invalidation. After a workgroup's acquire, the checker reports no more races between
 * this workgroup and other workgroups.
 *
 * Cells (cells.h) record the accesses to each dword of an allocation, and of workgroup memory.
 * Accesses of two launches do not race if a stream, an event or a wait orders the launches
 * (order.h). */
#ifndef SOFTGPU_CHECK_RACE_H
#define SOFTGPU_CHECK_RACE_H

#include "../isa/memory.h"
#include "cells.h"
#include "order.h"

/* A wave's access that conflicts with an earlier access. */
struct softgpu_conflict {
    int lane;
    uint64_t va;
    struct softgpu_stamp other;
    bool found;
    uint32_t op; /* the earlier op that conflicts, or 0 if `other` belongs to this launch */
    uint64_t pc; /* the address of the conflicting instruction; 0: unknown */
    bool other_writes;
};

/* Records in `cells` that the lanes of `mask` access memory at `va`. The first cell belongs to the
 * dword at `begin`. A scalar access counts as an access of lane 0. If `clock` is not NULL, the
 * function also looks for races with earlier launches that may still run according to `clock`. */
struct softgpu_conflict softgpu_race_global(struct wave *w, const struct inst *i,
                                            struct softgpu_cells *cells, uint64_t begin,
                                            const uint64_t *va, uint64_t mask, unsigned bytes,
                                            const struct softgpu_clock *clock);
/* Looks for a race between a copy or fill of [va, va + bytes) and launches that may still run.
 * `clock` tells which ops are over. */
struct softgpu_conflict softgpu_race_move(struct softgpu_cells *cells, uint64_t begin, uint64_t va,
                                          uint64_t bytes, bool writes,
                                          const struct softgpu_clock *clock);
/* Returns the op of the last launch that wrote the byte at `va`. Sets `*pc` to the address of the
 * storing instruction, or to 0 if the address is unknown. Returns 0 if no launch has written the
 * byte. */
uint32_t softgpu_race_writer(const struct softgpu_cells *cells, uint64_t begin, uint64_t va,
                             uint64_t *pc);
/* Records accesses to workgroup memory. */
struct softgpu_conflict softgpu_race_lds(struct wave *w, const struct inst *i,
                                         const uint32_t *offset, uint64_t mask, unsigned bytes);
/* Returns the op number of a dispatch (launch.h). Sets d->clock; d->clock is NULL if the order of
 * the op is unknown. */
uint32_t softgpu_launch_of(struct dispatch *d);
/* Notes that a launch begins. `hips` is true for HIP's own kernels, whose accesses count as
 * accesses of the program's call. */
void softgpu_race_launch(struct dispatch *d, bool hips);
/* Notes that a wave invalidates its caches, so that its next loads read the stores of other
 * waves. */
void softgpu_race_acquire(struct wave *w);

/* Returns whether a stamp names an instruction, and stores the instruction's address in *pc. */
bool softgpu_stamp_place(const struct dispatch *d, struct softgpu_stamp stamp, uint64_t *pc);

#endif
