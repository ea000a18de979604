/* Declares the structures that run waves: decoded code, workgroups and dispatches. */
#ifndef SOFTGPU_EXEC_H
#define SOFTGPU_EXEC_H

#include "../check/hooks.h"
#include "isa.h"

#include <pthread.h>

/* A decoded function: all instructions that direct branches can reach from the function's entry. */
struct code {
    uint64_t va; /* address of the entry */
    enum target_mask target;
    uint32_t words;     /* number of words from the entry to the end of the last instruction */
    bool whole;         /* every path ends at an instruction that ends it, within the mapping */
    uint32_t *copy;     /* a copy of these words, to detect changes in memory */
    struct inst *insts; /* by ascending offset */
    uint32_t count;
    int32_t *at;    /* by word: index of the instruction that begins there, or -1 */
    unsigned users; /* number of dispatches that may be running the function */
    struct code *next;
};

enum { HOT_RANGES = 8 };

struct dispatch {
    const struct softgpu_context *context;
    const struct softgpu_dispatch_packet *packet;
    enum target_mask target;
    uint64_t entry;
    uint32_t rsrc1, rsrc2, rsrc3;
    uint16_t properties;
    uint32_t grid[3], block[3], groups[3]; /* grid and block in work-items, groups in workgroups */
    uint32_t lds_size, scratch_lane_size;  /* bytes */
    uint64_t budget, barrier_budget;       /* in instructions; 0: no limit */
    /* points to softgpu_code_at, so that the files that run instructions need no decoder */
    const struct inst *(*code_at)(struct dispatch *d, uint64_t pc, const struct code **code);

    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct code **codes; /* functions that the dispatch has used so far */
    unsigned code_count, code_capacity;
    uint64_t next_group, group_count, done_count;
    struct group *parked; /* groups that have used up their turn, the oldest first */
    struct group **parked_tail;
    unsigned resident; /* number of groups that have begun and not ended */
    uint64_t instructions;
    bool failed;
    struct softgpu_fault *fault;

    struct dispatch *next; /* next dispatch that needs helpers, in the pool's list */
    unsigned helpers;

    /* The checker's. */
    uint32_t launch;                   /* the op number of the launch; 0: no race detection */
    const struct softgpu_clock *clock; /* the ops that are over before the launch, or NULL */
};

struct group {
    struct dispatch *dispatch;
    uint32_t id[3], size[3]; /* at the grid's end, size may be less than the block size */
    unsigned wave_count;
    struct wave *waves[WAVES_PER_GROUP];
    unsigned waves_allocated;
    unsigned turn; /* index of the wave that runs next */
    uint8_t *lds;
    uint32_t lds_capacity;
    uint8_t *scratch;
    uint64_t scratch_capacity;
    struct softgpu_range hot[HOT_RANGES]; /* the latest mappings, the most recently used first */
    uint64_t awaited; /* instructions that waves ran while a wave waited at a barrier */
    struct group *next;

    /* The checker's. */
    struct softgpu_race *race;
    struct softgpu_group_bits *bits;
};

/* The address at which kernels see scratch memory. Only swizzled buffer accesses and scratch
 * accesses use this address, so it cannot conflict with a mapping. */
#define SCRATCH_VA 0x100000000000ull

/* Finds the code at an address (code.c). */
const struct inst *softgpu_code_at(struct dispatch *d, uint64_t pc, const struct code **code);
void softgpu_code_release(struct dispatch *d);

/* Returns the number of a wave's vector registers; since gfx90a the number includes the
 * accumulation registers. */
static inline unsigned softgpu_vgprs(const struct dispatch *d) {
    return ((d->rsrc1 & 63) + 1) * (d->target & SINCE90A ? 8 : 4);
}

/* Begins a workgroup (group.c). */
struct group *softgpu_group_begin(struct dispatch *d, uint64_t number);
bool softgpu_group_run(struct group *g); /* runs one turn; returns true when every wave has ended */
void softgpu_group_end(struct group *g);

/* Sets the number of waves at a barrier of global wave sync (gws.c). */
void softgpu_gws_init(struct wave *w, const struct inst *i);
void softgpu_gws_barrier(struct wave *w, const struct inst *i);

/* Handles a kernel's interrupt message; `event` is the event number from M0. */
void softgpu_interrupt(uint32_t event);

/* Runs a dispatch (pool.c). */
void softgpu_dispatch_run(struct dispatch *d);

#endif
