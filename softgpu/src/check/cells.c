#include "cells.h"
#include "order.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* ---- memory ---- */

/* Reserves memory that occupies a page only once the page is used. */
static void *reserve(size_t bytes) {
    enum { FLAGS = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE };
    void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, FLAGS, -1, 0);
    return pages == MAP_FAILED ? NULL : pages;
}

struct softgpu_cells *softgpu_cells_begin(uint64_t va, uint64_t size) {
    struct softgpu_cells *all = calloc(1, sizeof *all);
    if (!all)
        return NULL;
    all->count = (size_t)((va + size + 3) / 4 - va / 4);
    all->cells = reserve(all->count * sizeof *all->cells);
    all->atomics = reserve(all->count * sizeof *all->atomics);
    if (all->cells && all->atomics)
        return all;
    softgpu_cells_end(all);
    return NULL;
}

void softgpu_cells_end(struct softgpu_cells *all) {
    if (all && all->cells)
        munmap(all->cells, all->count * sizeof *all->cells);
    if (all && all->atomics)
        munmap(all->atomics, all->count * sizeof *all->atomics);
    free(all);
}

void softgpu_cells_clear(struct softgpu_cells *all) {
    if (!all)
        return;
    madvise(all->cells, all->count * sizeof *all->cells, MADV_DONTNEED);
    madvise(all->atomics, all->count * sizeof *all->atomics, MADV_DONTNEED);
}

bool softgpu_cell_locks[SOFTGPU_CELL_LOCKS];

struct softgpu_atomics *softgpu_cells_make_atomics(struct softgpu_cells *all, size_t number) {
    if (!all->atomics)
        all->atomics = calloc(all->count, sizeof *all->atomics);
    all->cells[number].has_atomics = all->atomics != NULL;
    return softgpu_cells_atomics(all, number);
}

/* ---- earlier launches ---- */

static struct softgpu_trace trace_of(uint32_t launch, struct softgpu_stamp stamp) {
    return (struct softgpu_trace){.op = launch, .bytes = stamp.bytes, .place = stamp.place};
}

/* Records an access of an earlier launch. The latest accesses of two streams are kept. */
static void note_past(struct softgpu_trace two[2], struct softgpu_trace trace) {
    const struct softgpu_op *op = softgpu_op_at(trace.op);
    unsigned n = 0;
    while (n < 2 && two[n].bytes && softgpu_op_at(two[n].op)->slot != op->slot)
        n++;
    if (n == 2)
        n = two[0].op < two[1].op ? 0 : 1;
    two[n] = trace;
}

static void begin_atomics(struct softgpu_atomics *atomics, bool is_written, uint32_t before) {
    if (atomics->last.bytes || is_written)
        atomics->past_last = trace_of(before, atomics->last);
    for (unsigned n = 0; n < 2; n++)
        if (atomics->sum[n].bytes)
            note_past(atomics->past_sum, trace_of(before, atomics->sum[n]));
    atomics->last = atomics->sum[0] = atomics->sum[1] = (struct softgpu_stamp){0};
}

void softgpu_cell_begin_launch(struct softgpu_cell *cell, struct softgpu_atomics *atomics,
                               uint32_t launch) {
    if (atomics)
        begin_atomics(atomics, cell->write.bytes != 0, cell->launch);
    if (cell->write.bytes)
        cell->past_write = trace_of(cell->launch, cell->write);
    for (unsigned n = 0; n < 2; n++)
        if (cell->read[n].bytes)
            note_past(cell->past_read, trace_of(cell->launch, cell->read[n]));
    cell->write = cell->read[0] = cell->read[1] = (struct softgpu_stamp){0};
    cell->launch = launch & INT32_MAX;
}
