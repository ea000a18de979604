/* Races within a launch: two accesses of different waves to the same bytes, of which one writes and
 * which nothing orders. A wave's own accesses are ordered. A barrier orders those of a workgroup's
 * waves. LLVM acquires by an atomic access that returns a value, and an invalidation of the cache
 * after it. From then on nothing is reported for this workgroup about others.
 *
 * Each dword of an allocation, and of workgroup memory, has a cell: who wrote it and who read it
 * last. Cells of allocations may be used from any thread; a workgroup is run by one at a time.
 *
 * A cell of an allocation also says which earlier launches wrote and read the dword. A later launch
 * races with them if no stream, event or wait of the program orders it after them (order.h). */
#ifndef SOFTGPU_CHECK_RACE_H
#define SOFTGPU_CHECK_RACE_H

#include "../isa/memory.h"
#include "order.h"

/* The last access to a dword, by one wave; if `bytes` is 0, no wave has accessed the dword. */
struct softgpu_stamp {
    uint64_t group : 24, wave : 4, epoch : 16, /* barriers of the workgroup before it */
        bytes : 4,                             /* a bit for each, lowest first */
        kind : 2,                              /* enum access_kind */
        place : 14;                            /* dwords from the kernel's entry, or NO_PLACE */
};

/* A launch that accessed a dword before the latest one did; without bytes, none did. */
struct softgpu_trace {
    uint64_t op : 32, bytes : 4, kind : 2, place : 14;
};

/* The stamps are of one launch: the latest. */
struct softgpu_cell {
    struct softgpu_stamp write, read[2];
    uint32_t launch, value; /* the dword that was written */
    struct softgpu_trace past_write, past_read[2];
};

/* Cells for the dwords of [va, va + size), to be released by softgpu_cells_end; NULL if there is no
 * memory. */
struct softgpu_cell *softgpu_cells_begin(uint64_t va, uint64_t size);
void softgpu_cells_end(struct softgpu_cell *cells, uint64_t va, uint64_t size);
/* Makes them as new, and leaves them to those who may still look. */
void softgpu_cells_clear(struct softgpu_cell *cells, uint64_t va, uint64_t size);

/* An access of a wave that conflicts with one before it. */
struct softgpu_conflict {
    int lane;
    uint64_t va;
    struct softgpu_stamp other;
    bool found;
    uint32_t op; /* the other side, if it is another launch: of its access the place is known */
    uint64_t pc; /* of that access; 0: unknown */
    bool other_writes;
};

/* Enters the accesses of a mask's lanes, at va, into cells. The first cell is of the dword at
 * `begin`. A scalar access is lane 0's. `clock`: earlier launches that are not over by it are
 * compared too. */
struct softgpu_conflict softgpu_race_global(struct wave *w, const struct inst *i,
                                            struct softgpu_cell *cells, uint64_t begin,
                                            const uint64_t *va, uint64_t mask, unsigned bytes,
                                            const struct softgpu_clock *clock);
/* Compares a copy's or fill's access to [va, va + bytes) with launches that are not over. */
struct softgpu_conflict softgpu_race_move(struct softgpu_cell *cells, uint64_t begin, uint64_t va,
                                          uint64_t bytes, bool writes,
                                          const struct softgpu_clock *clock);
/* Enters accesses to workgroup memory. */
struct softgpu_conflict softgpu_race_lds(struct wave *w, const struct inst *i,
                                         const uint32_t *offset, uint64_t mask, unsigned bytes);
/* Returns the number of the op that a dispatch is (launch.h); sets its clock, NULL if it has no
 * order. */
uint32_t softgpu_launch_of(struct dispatch *d);
/* Notes that a launch begins; `hips`: of HIP's own kernel, whose accesses are the call's. */
void softgpu_race_launch(struct dispatch *d, bool hips);
/* Notes that a wave drops what the caches hold: it sees what others published. */
void softgpu_race_acquire(struct wave *w);

/* Returns whether a stamp has a place, and gives the address of its instruction. */
bool softgpu_stamp_place(const struct dispatch *d, struct softgpu_stamp stamp, uint64_t *pc);

#endif
