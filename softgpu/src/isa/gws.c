/* Implements global wave sync: barriers between the waves of a whole grid, for cooperative
 * launches. Before the launch, one of HIP's own kernels sets the number of waves. */
#include "exec.h"

enum { RESOURCES = 64 };

static struct {
    uint32_t others; /* number of waves that take part in the barrier, minus 1 */
    uint32_t arrived, generation;
} resources[RESOURCES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static unsigned resource(const struct wave *w, const struct inst *i) {
    return ((w->s[SGPR_M0] >> 16) + (uint32_t)i->imm) % RESOURCES;
}

/* Returns the first active lane's value of the operand. */
static uint32_t operand(const struct wave *w, const struct inst *i) {
    uint64_t exec = wave_exec(w);
    return w->v[i->src[0].reg][exec ? __builtin_ctzll(exec) : 0];
}

void softgpu_gws_init(struct wave *w, const struct inst *i) {
    unsigned r = resource(w, i);
    pthread_mutex_lock(&lock);
    resources[r].others = operand(w, i);
    resources[r].arrived = 0;
    pthread_mutex_unlock(&lock);
}

/* Returns true if the wave may pass the barrier. The last wave to arrive passes at once. An earlier
 * wave passes after the last wave has arrived. */
static bool passes(struct wave *w, unsigned r) {
    if (w->gws_waits)
        return resources[r].generation != w->gws_generation;
    if (resources[r].arrived++ >= resources[r].others) {
        resources[r].arrived = 0;
        resources[r].generation++;
        return true;
    }
    w->gws_generation = resources[r].generation;
    return false;
}

void softgpu_gws_barrier(struct wave *w, const struct inst *i) {
    pthread_mutex_lock(&lock);
    w->gws_waits = !passes(w, resource(w, i));
    pthread_mutex_unlock(&lock);
    if (!w->gws_waits) {
        CHECK_GRID_BARRIER(w);
        return;
    }
    w->next = i;
    w->stop = YIELDED;
}
