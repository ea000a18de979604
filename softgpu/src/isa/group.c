/* Runs a workgroup: initialises its waves, runs them in turns, and releases barriers. */
#include "exec.h"
#include "families.h"

#include <stdlib.h>

/* A wave's turn is long compared with the cost of a switch. Even if waves wait for each other in a
 * loop, a turn ends so soon that a user does not notice the delay. At the end of a group's turn,
 * the thread checks whether other groups wait. */
enum { WAVE_TURN = 20000, GROUP_TURN = 4000000 };

/* Caches ended groups for the next launch, to avoid mapping 128 KiB for each wave again. */
enum { IDLE_GROUPS = 64 };
static struct {
    pthread_mutex_t lock;
    struct group *first;
    unsigned count;
} idle = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void free_group(struct group *g) {
    for (unsigned n = 0; n < g->waves_allocated; n++) {
        CHECK_WAVE_FREE(g->waves[n]);
        free(g->waves[n]);
    }
    CHECK_GROUP_FREE(g);
    free(g->lds);
    free(g->scratch);
    free(g);
}

static struct group *take_idle(void) {
    pthread_mutex_lock(&idle.lock);
    struct group *g = idle.first;
    if (g) {
        idle.first = g->next;
        idle.count--;
    }
    pthread_mutex_unlock(&idle.lock);
    return g;
}

void softgpu_group_end(struct group *g) {
    CHECK_GROUP_END(g);
    pthread_mutex_lock(&idle.lock);
    bool keep = idle.count < IDLE_GROUPS;
    if (keep) {
        g->next = idle.first;
        idle.first = g;
        idle.count++;
    }
    pthread_mutex_unlock(&idle.lock);
    if (!keep)
        free_group(g);
}

static bool reserve(struct group *g, const struct dispatch *d) {
    while (g->waves_allocated < g->wave_count) {
        struct wave *w = aligned_alloc(64, (sizeof *w + 63) / 64 * 64);
        if (!w)
            return false;
        memset(w, 0, sizeof *w);
        g->waves[g->waves_allocated++] = w;
    }
    if (g->lds_capacity < d->lds_size) {
        free(g->lds);
        g->lds_capacity = 0;
        g->lds = malloc(d->lds_size);
        if (!g->lds)
            return false;
        g->lds_capacity = d->lds_size;
    }
    uint64_t scratch = (uint64_t)d->scratch_lane_size * LANES * g->wave_count;
    if (g->scratch_capacity < scratch) {
        free(g->scratch);
        g->scratch_capacity = 0;
        g->scratch = malloc(scratch);
        if (!g->scratch)
            return false;
        g->scratch_capacity = scratch;
    }
    return true;
}

/* Sets the user SGPRs, in the order of the kernel descriptor's bits, then the workgroup's ids. */
static void first_sgprs(struct wave *w, const struct group *g, const struct dispatch *d) {
    enum { BUFFER = 1, DISPATCH = 2, QUEUE = 4, KERNARG = 8, ID = 16, FLAT = 32, PRIVATE = 64 };
    const struct softgpu_context *context = d->context;
    unsigned n = 0, bits = d->properties;
    if (bits & BUFFER) {
        /* Describes the group's scratch as a swizzled buffer: 4-byte elements, with 64 lanes side
         * by side. */
        w->s[n++] = (uint32_t)SCRATCH_VA;
        w->s[n++] = (uint32_t)(SCRATCH_VA >> 32) | 1u << 31;
        w->s[n++] = UINT32_MAX;
        w->s[n++] = 0xfacu | 4u << 12 | 4u << 15 | 3u << 21 | 1u << 23;
    }
    if (bits & DISPATCH)
        set_sgpr64(w, n, context->packet_va), n += 2;
    if (bits & QUEUE)
        set_sgpr64(w, n, context->queue_va), n += 2;
    if (bits & KERNARG)
        set_sgpr64(w, n, d->packet->kernarg_address), n += 2;
    if (bits & ID)
        set_sgpr64(w, n, context->dispatch_id), n += 2;
    if (bits & FLAT)
        set_sgpr64(w, n, SCRATCH_VA), n += 2;
    if (bits & PRIVATE)
        w->s[n++] = d->scratch_lane_size;
    n = d->rsrc2 >> 1 & 31;
    for (unsigned axis = 0; axis < 3; axis++)
        if (d->rsrc2 >> (7 + axis) & 1)
            w->s[n++] = g->id[axis];
    if (d->rsrc2 >> 10 & 1)
        w->s[n++] = g->wave_count | (uint32_t)(w->index == 0) << 31;
    if (d->rsrc2 & 1 && d->target != GFX942) /* gfx942's hardware adds scratch_offset itself */
        w->s[n] = (uint32_t)w->scratch_offset;
}

/* Sets the work-item ids: gfx90a and later pack the ids into v0; older targets use one register for
 * each id. */
static uint64_t first_vgprs(struct wave *w, const struct group *g, const struct dispatch *d) {
    uint32_t total = g->size[0] * g->size[1] * g->size[2], ids = d->rsrc2 >> 11 & 3;
    uint32_t base = (uint32_t)w->index * LANES, plane = g->size[0] * g->size[1];
    uint32_t x = base % g->size[0], y = base / g->size[0] % g->size[1], z = base / plane;
    for (unsigned l = 0; l < LANES; l++) {
        if (d->target & SINCE90A) {
            w->v[0][l] = x | y << 10 | z << 20;
        } else {
            w->v[0][l] = x;
            if (ids >= 1)
                w->v[1][l] = y;
            if (ids >= 2)
                w->v[2][l] = z;
        }
        if (++x == g->size[0]) {
            x = 0;
            if (++y == g->size[1])
                y = 0, z++;
        }
    }
    uint32_t left = total - base;
    return left >= LANES ? UINT64_MAX : (1ull << left) - 1;
}

static void begin_wave(struct wave *w, struct group *g, struct dispatch *d, unsigned index) {
    unsigned vgprs = softgpu_vgprs(d);
    w->group = g;
    w->index = (uint8_t)index;
    w->stop = RUNNING;
    w->scc = false;
    w->gws_waits = false;
    w->trapsts = 0;
    w->instructions = 0;
    w->mode = (d->rsrc1 >> 12 & 0xff) | (d->rsrc1 >> 21 & 1 ? MODE_DX10_CLAMP : 0) |
              (d->rsrc1 >> 23 & 1 ? MODE_IEEE : 0) | (d->rsrc1 >> 26 & 1 ? MODE_FP16_OVFL : 0);
    w->fp_special = mode_is_special(w->mode);
    w->scratch_offset = (uint64_t)index * d->scratch_lane_size * LANES;
    memset(w->s, 0, sizeof w->s);
    /* All registers begin as 0, so a program that reads an uninitialised register runs
     * reproducibly. On gfx90a and later, the kernel descriptor has one count for the v and a
     * registers together. On gfx908, a wave has an equal number of v registers and a registers. */
    memset(w->v, 0, sizeof w->v[0] * (vgprs < AGPR0 ? vgprs : AGPR0));
    unsigned arch = d->target & SINCE90A ? ((d->rsrc3 & 63) + 1) * 4 : 0;
    unsigned accs = d->target == GFX908 ? vgprs : vgprs > arch ? vgprs - arch : 0;
    if (d->target != GFX906)
        memset(w->v[AGPR0], 0, sizeof w->v[0] * (accs < AGPR0 ? accs : AGPR0));
    first_sgprs(w, g, d);
    set_sgpr64(w, SGPR_EXEC, first_vgprs(w, g, d));
    CHECK_WAVE_BEGIN(w);
    w->next = softgpu_code_at(d, d->entry, &w->code);
    if (!w->next)
        softgpu_wave_fault(w, NULL, -1, "there is no code at its entry");
}

struct group *softgpu_group_begin(struct dispatch *d, uint64_t number) {
    struct group *g = take_idle();
    if (!g)
        g = calloc(1, sizeof *g);
    if (!g)
        return NULL;
    g->dispatch = d;
    g->turn = 0;
    memset(g->hot, 0, sizeof g->hot);
    g->awaited = 0;
    uint64_t rest = number;
    for (unsigned axis = 0; axis < 3; axis++) {
        g->id[axis] = (uint32_t)(rest % d->groups[axis]);
        rest /= d->groups[axis];
        uint32_t left = d->grid[axis] - g->id[axis] * d->block[axis];
        g->size[axis] = left < d->block[axis] ? left : d->block[axis];
    }
    g->wave_count = (g->size[0] * g->size[1] * g->size[2] + LANES - 1) / LANES;
    if (!reserve(g, d)) {
        free_group(g);
        return NULL;
    }
    if (d->lds_size)
        memset(g->lds, 0, d->lds_size);
    CHECK_GROUP_BEGIN(g, number);
    for (unsigned n = 0; n < g->wave_count; n++)
        begin_wave(g->waves[n], g, d, n);
    return g;
}

/* Runs an instruction between s_set_gpr_idx_on and s_set_gpr_idx_off. M0 selects operands, and
 * contains an offset. The instruction adds the offset to the selected operands' vector register
 * numbers. */
static void run_indexed(struct wave *w, const struct inst *i) {
    struct inst moved = *i;
    unsigned m0 = w->s[SGPR_M0];
    struct operand *const operands[] = {&moved.src[0], &moved.src[1], &moved.src[2], &moved.dst};
    bool vector = i->encoding >= E_VOP1 && i->encoding <= E_VOP3P;
    for (unsigned n = 0; n < 4 && vector; n++) {
        struct operand *o = operands[n];
        if (o->kind != O_VGPR || !(m0 >> (12 + n) & 1))
            continue;
        o->reg += m0 & 0xff;
        if (o->reg + softgpu_type_dwords(o->type) > AGPR0) {
            softgpu_wave_fault(w, i, -1, "M0 = 0x%x leads outside the vector registers", m0);
            return;
        }
    }
    CHECKED_RUN(w, &moved);
}

static void run_wave(struct wave *w) {
    unsigned n = 0;
    for (; w->stop == RUNNING && n < WAVE_TURN && w->mode & MODE_GPR_IDX; n++)
        run_indexed(w, w->next++);
    while (w->stop == RUNNING && n < WAVE_TURN) {
        const struct inst *i = w->next++;
        CHECKED_RUN(w, i);
        n++;
    }
    w->instructions += n;
    if (w->stop == YIELDED)
        w->stop = RUNNING;
}

static unsigned count_waves(const struct group *g, enum stop stop) {
    unsigned count = 0;
    for (unsigned n = 0; n < g->wave_count; n++)
        count += g->waves[n]->stop == stop;
    return count;
}

/* Returns true if all running waves of the group wait at the grid's barrier, so that other groups
 * must run first. */
static bool waits_for_grid(const struct group *g) {
    bool any = false;
    for (unsigned n = 0; n < g->wave_count; n++) {
        if (g->waves[n]->stop == RUNNING && !g->waves[n]->gws_waits)
            return false;
        any |= g->waves[n]->stop == RUNNING;
    }
    return any;
}

/* Releases the barrier. No wave can run, so every wave that has not ended waits at the barrier. */
static void release_barrier(struct group *g) {
    CHECK_BARRIER(g);
    for (unsigned n = 0; n < g->wave_count; n++)
        if (g->waves[n]->stop == AT_BARRIER)
            g->waves[n]->stop = RUNNING;
    g->awaited = 0;
}

/* Counts the instructions that some waves run while other waves wait at a barrier. Without a limit,
 * a wave that loops until a wave at the barrier acts would never end. */
static void charge_barrier(struct group *g, uint64_t instructions) {
    const uint64_t budget = g->dispatch->barrier_budget;
    g->awaited += instructions;
    if (!budget || g->awaited <= budget)
        return;
    struct wave *runs = NULL;
    for (unsigned n = 0; n < g->wave_count && !runs; n++)
        if (g->waves[n]->stop == RUNNING)
            runs = g->waves[n];
    softgpu_wave_fault(runs, runs->next, -1,
                       "%u of the group's %u waves wait at a barrier that this one has not come to "
                       "in barrier_budget=%llu instructions (MGPU_RT_SOFTGPU)",
                       count_waves(g, AT_BARRIER), g->wave_count, (unsigned long long)budget);
}

static void charge(struct group *g, struct wave *w, uint64_t instructions) {
    struct dispatch *d = g->dispatch;
    uint64_t sum = __atomic_add_fetch(&d->instructions, instructions, __ATOMIC_RELAXED);
    if (d->budget && sum > d->budget && w->stop != FAULTED)
        softgpu_wave_fault(w, w->next, -1,
                           "more than budget=%llu instructions (MGPU_RT_SOFTGPU); %u of the "
                           "group's %u waves wait at a barrier",
                           (unsigned long long)d->budget, count_waves(g, AT_BARRIER),
                           g->wave_count);
}

bool softgpu_group_run(struct group *g) {
    uint64_t used = 0;
    for (;;) {
        const uint64_t before_pass = used;
        for (unsigned n = 0; n < g->wave_count; n++) {
            struct wave *w = g->waves[n];
            if (w->stop == RUNNING) {
                uint64_t before = w->instructions;
                run_wave(w);
                charge(g, w, w->instructions - before);
                used += w->instructions - before;
            }
            if (w->stop == FAULTED || __atomic_load_n(&g->dispatch->failed, __ATOMIC_RELAXED))
                return true;
        }
        const unsigned waiting = count_waves(g, AT_BARRIER);
        const unsigned running = count_waves(g, RUNNING);
        if (!running && !waiting)
            return true;
        if (!running)
            release_barrier(g);
        else if (waiting)
            charge_barrier(g, used - before_pass);
        if (used >= GROUP_TURN || waits_for_grid(g))
            return false;
    }
}
