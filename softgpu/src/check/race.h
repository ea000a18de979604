/* Races within a launch: two accesses of different waves to one byte, of which one writes and which
 * are not ordered. Accesses of one wave are ordered. A barrier orders the accesses of a workgroup's
 * waves. LLVM acquires by an atomic access that returns a value, and an invalidation of the cache
 * after it. From then on no race with other workgroups is reported for this one.
 *
 * Each dword of an allocation, and of workgroup memory, has a cell: its last writer and its last
 * reader. Any thread may use an allocation's cells; only one thread at a time runs a workgroup.
 *
 * An allocation's cell also names the earlier launches that wrote and read the dword. A later
 * launch races with these launches if no stream, event or wait of the program orders it after them
 * (order.h). */
#ifndef SOFTGPU_CHECK_RACE_H
#define SOFTGPU_CHECK_RACE_H

#include "../isa/memory.h"
#include "order.h"

/* The last access to a dword, by one wave; if `bytes` is 0, no wave has accessed the dword. */
struct softgpu_stamp {
    uint64_t group : 24, wave : 4,
        epoch : 16, /* the number of the workgroup's barriers before it */
        bytes : 4,  /* a bit for each byte, lowest first */
        kind : 2,   /* enum access_kind */
        place : 14; /* distance in dwords from the kernel's entry, or NO_PLACE */
};

/* An earlier launch that accessed a dword before the latest one did; without bytes, none did. */
struct softgpu_trace {
    uint64_t op : 32, bytes : 4, kind : 2, place : 14;
};

/* The stamps belong to one launch: the latest. */
struct softgpu_cell {
    struct softgpu_stamp write, read[2];
    uint32_t launch, value; /* the dword that was written */
    struct softgpu_trace past_write, past_read[2];
};

/* Returns cells for the dwords of [va, va + size), to be released by softgpu_cells_end; NULL
 * without memory. */
struct softgpu_cell *softgpu_cells_begin(uint64_t va, uint64_t size);
void softgpu_cells_end(struct softgpu_cell *cells, uint64_t va, uint64_t size);
/* Empties the cells, and leaves them to threads that may still read them. */
void softgpu_cells_clear(struct softgpu_cell *cells, uint64_t va, uint64_t size);

/* A wave's access that conflicts with an earlier one. */
struct softgpu_conflict {
    int lane;
    uint64_t va;
    struct softgpu_stamp other;
    bool found;
    uint32_t op; /* the other side, if that is another launch: only its access's place is known */
    uint64_t pc; /* the address of that access; 0: unknown */
    bool other_writes;
};

/* Enters the accesses of a mask's lanes, at va, into cells. The first cell belongs to the dword at
 * `begin`. A scalar access counts as lane 0's. `clock`: also compares earlier launches that are not
 * over by it. */
struct softgpu_conflict softgpu_race_global(struct wave *w, const struct inst *i,
                                            struct softgpu_cell *cells, uint64_t begin,
                                            const uint64_t *va, uint64_t mask, unsigned bytes,
                                            const struct softgpu_clock *clock);
/* Compares a copy's or fill's access to [va, va + bytes) with launches that are not over. */
struct softgpu_conflict softgpu_race_move(struct softgpu_cell *cells, uint64_t begin, uint64_t va,
                                          uint64_t bytes, bool writes,
                                          const struct softgpu_clock *clock);
/* Records accesses to workgroup memory. */
struct softgpu_conflict softgpu_race_lds(struct wave *w, const struct inst *i,
                                         const uint32_t *offset, uint64_t mask, unsigned bytes);
/* Returns the number of a dispatch's op (launch.h); sets its clock, NULL if it has no order. */
uint32_t softgpu_launch_of(struct dispatch *d);
/* Notes that a launch begins; `hips`: it is a kernel of HIP's own, whose accesses count as the
 * call's. */
void softgpu_race_launch(struct dispatch *d, bool hips);
/* Notes that a wave invalidates its caches: it sees what others published. */
void softgpu_race_acquire(struct wave *w);

/* Returns whether a stamp has a place, and stores the address of its instruction. */
bool softgpu_stamp_place(const struct dispatch *d, struct softgpu_stamp stamp, uint64_t *pc);

#endif
