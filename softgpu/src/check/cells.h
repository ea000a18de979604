/* Cells record who accessed the dwords of an allocation, or of workgroup memory.
 *
 * Each dword has a cell, which names the dword's last plain accesses. A dword that an atomic access
 * has written also has a record of its atomic accesses. The two are apart, because an atomic access
 * can race with a plain access only: an atomic access of a wave must not hide the wave's plain
 * accesses, and a plain access must not hide the atomic ones.
 *
 * A cell also records which earlier launches accessed the dword (order.h). Several threads may use
 * an allocation's cells at once, under softgpu_cells_lock. Only one thread at a time uses the cells
 * of workgroup memory. */
#ifndef SOFTGPU_CHECK_CELLS_H
#define SOFTGPU_CHECK_CELLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* Returns the lock of a cell, which the caller may hold already. */
bool *softgpu_cells_lock(const struct softgpu_cell *cell);
void softgpu_cells_take(bool *lock);
/* Releases a lock; NULL is allowed. */
void softgpu_cells_drop(bool *lock);

/* Returns the record of a dword's atomic accesses, or NULL if there was no such access. */
struct softgpu_atomics *softgpu_cells_atomics(const struct softgpu_cells *all, size_t number);
/* Returns the record, and creates it if necessary. Returns NULL if memory is exhausted. */
struct softgpu_atomics *softgpu_cells_make_atomics(struct softgpu_cells *all, size_t number);

/* Notes a plain read, a plain write of `value`, an atomic write of any kind, or an atomic access
 * that races with plain accesses (race.h). */
void softgpu_cell_read(struct softgpu_cell *cell, struct softgpu_stamp stamp);
void softgpu_cell_write(struct softgpu_cell *cell, struct softgpu_atomics *atomics,
                        struct softgpu_stamp stamp, uint32_t value);
void softgpu_cell_sum(struct softgpu_atomics *atomics, struct softgpu_stamp stamp);
/* Returns the dword's last write, plain or atomic. `atomics` may be NULL. */
struct softgpu_stamp softgpu_cell_last(const struct softgpu_cell *cell,
                                       const struct softgpu_atomics *atomics);
/* Turns the stamps of the previous launch into traces when a launch first accesses a dword.
 * `atomics` may be NULL. */
void softgpu_cell_begin_launch(struct softgpu_cell *cell, struct softgpu_atomics *atomics,
                               uint32_t launch);

#endif
