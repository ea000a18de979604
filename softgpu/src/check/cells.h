/* Cells record who accessed the dwords of an allocation, or of workgroup memory.
 *
 * Each dword has a cell, which names the dword's last plain accesses. A dword that an atomic access
 * has written also has a record of its atomic accesses. The two are apart, because atomic accesses
 * do not race with each other. So an atomic access must not hide a plain access of its wave, and a
 * plain access must not hide an atomic one.
 *
 * A cell also records which earlier launches accessed the dword (order.h). Several threads may use
 * an allocation's cells at once, under softgpu_cells_lock. Only one thread at a time uses the cells
 * of workgroup memory. */
#ifndef SOFTGPU_CHECK_CELLS_H
#define SOFTGPU_CHECK_CELLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* An access of one wave to a dword; `bytes` is 0 if there was no such access. */
struct softgpu_stamp {
    uint64_t group : 24, wave : 4,
        epoch : 16, /* the number of barriers that the workgroup passed before the access */
        bytes : 4,  /* bit n stands for byte n of the dword */
        place : 14; /* distance in dwords from the kernel's entry, or SOFTGPU_NO_PLACE */
};

enum { SOFTGPU_NO_PLACE = (1 << 14) - 1 };

/* An access of an earlier launch to a dword; `bytes` is 0 if there was no such access. */
struct softgpu_trace {
    uint64_t op : 32, bytes : 4, place : 14;
};

/* The plain accesses. All stamps belong to the latest launch that accessed the dword. */
struct softgpu_cell {
    struct softgpu_stamp write, read[2];
    uint32_t launch : 31, has_atomics : 1;
    uint32_t value; /* the dword that the last plain access wrote */
    struct softgpu_trace past_write, past_read[2];
};

/* The atomic accesses. */
struct softgpu_atomics {
    struct softgpu_stamp last; /* the dword's last write, if it was atomic */
    struct softgpu_stamp sum[2];
    struct softgpu_trace past_last, past_sum[2];
};

/* The cells of consecutive dwords. `atomics` may be NULL as long as no cell has atomics. */
struct softgpu_cells {
    size_t count;
    struct softgpu_cell *cells;
    struct softgpu_atomics *atomics;
};

/* Returns the cells of the dwords of [va, va + size), or NULL if memory is exhausted.
 * softgpu_cells_end releases the cells; NULL is allowed. */
struct softgpu_cells *softgpu_cells_begin(uint64_t va, uint64_t size);
void softgpu_cells_end(struct softgpu_cells *all);
/* Clears the cells without unmapping them, because other threads may still read them. */
void softgpu_cells_clear(struct softgpu_cells *all);

/* ---- locks: each is for the cells of 256 bytes, and of others far off ---- */

enum { SOFTGPU_CELL_LOCKS = 1024, SOFTGPU_CELLS_A_LOCK = 64 };
extern bool softgpu_cell_locks[SOFTGPU_CELL_LOCKS];

static inline bool *softgpu_cells_lock(const struct softgpu_cell *cell) {
    return &softgpu_cell_locks[(uintptr_t)cell / (SOFTGPU_CELLS_A_LOCK * sizeof *cell) %
                               SOFTGPU_CELL_LOCKS];
}

static inline void softgpu_cells_take(bool *lock) {
    while (__atomic_test_and_set(lock, __ATOMIC_ACQUIRE))
        ;
}

/* Releases a lock; NULL is allowed. */
static inline void softgpu_cells_drop(bool *lock) {
    if (lock)
        __atomic_clear(lock, __ATOMIC_RELEASE);
}

/* ---- accesses ---- */

/* Returns the record of a dword's atomic accesses, or NULL if there was no such access. */
static inline struct softgpu_atomics *softgpu_cells_atomics(const struct softgpu_cells *all,
                                                            size_t number) {
    return all->cells[number].has_atomics ? &all->atomics[number] : NULL;
}

/* Returns the record, and creates it if necessary. Returns NULL if memory is exhausted. */
struct softgpu_atomics *softgpu_cells_make_atomics(struct softgpu_cells *all, size_t number);

/* Compares the lowest fields of two stamps at once. */
static inline bool softgpu_stamp_equals(struct softgpu_stamp a, struct softgpu_stamp b,
                                        unsigned bits) {
    uint64_t first, second;
    memcpy(&first, &a, sizeof first);
    memcpy(&second, &b, sizeof second);
    return (first ^ second) << (64 - bits) == 0;
}

static inline bool softgpu_stamp_is_own(struct softgpu_stamp a, struct softgpu_stamp b) {
    return softgpu_stamp_equals(a, b, 28); /* group and wave */
}

/* Adds the bytes of the wave's previous access, if no barrier lies between the two accesses. */
static inline struct softgpu_stamp softgpu_stamp_merge(struct softgpu_stamp stamp,
                                                       struct softgpu_stamp before) {
    if (softgpu_stamp_equals(stamp, before, 44)) /* group, wave and epoch */
        stamp.bytes |= before.bytes;
    return stamp;
}

/* Records an access beside the last access of another wave. A wave of another workgroup is
 * preferred. */
static inline void softgpu_stamp_note(struct softgpu_stamp two[2], struct softgpu_stamp stamp) {
    const struct softgpu_stamp last = two[0], other = two[1];
    if (softgpu_stamp_is_own(last, stamp)) {
        two[0] = softgpu_stamp_merge(stamp, last);
        return;
    }
    two[0] = softgpu_stamp_merge(stamp, other);
    if (last.bytes && (last.group != stamp.group || !other.bytes || other.group == stamp.group))
        two[1] = last;
}

/* Drops the accesses of other waves. Accesses of the wave itself are kept: a store of an equal
 * value may race with them, but not with the wave's own store. */
static inline void softgpu_stamp_keep_own(struct softgpu_stamp two[2], struct softgpu_stamp stamp) {
    for (unsigned n = 0; n < 2; n++)
        if (two[n].bytes && !softgpu_stamp_is_own(two[n], stamp))
            two[n] = (struct softgpu_stamp){0};
}

/* Records a plain write. `atomics` may be NULL. */
static inline void softgpu_cell_write(struct softgpu_cell *cell, struct softgpu_atomics *atomics,
                                      struct softgpu_stamp stamp, uint32_t value) {
    enum { WHOLE = 15 };
    if (stamp.bytes == WHOLE) {
        softgpu_stamp_keep_own(cell->read, stamp);
        cell->value = value;
    } else {
        uint32_t kept = 0;
        for (unsigned n = 0; n < 4; n++)
            if (!(stamp.bytes >> n & 1))
                kept |= UINT32_C(0xff) << 8 * n;
        cell->value = (cell->value & kept) | (value & ~kept);
    }
    if (atomics && stamp.bytes == WHOLE)
        softgpu_stamp_keep_own(atomics->sum, stamp);
    if (atomics)
        atomics->last = (struct softgpu_stamp){0};
    cell->write = softgpu_stamp_merge(stamp, cell->write);
}

/* Returns the dword's last write, plain or atomic. `atomics` may be NULL. */
static inline struct softgpu_stamp softgpu_cell_last(const struct softgpu_cell *cell,
                                                     const struct softgpu_atomics *atomics) {
    return atomics && atomics->last.bytes ? atomics->last : cell->write;
}

/* Turns the stamps of the previous launch into traces when a launch first accesses a dword.
 * `atomics` may be NULL. */
void softgpu_cell_begin_launch(struct softgpu_cell *cell, struct softgpu_atomics *atomics,
                               uint32_t launch);

#endif
