#include "past.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { USES = 16, MOVES = 32 };

struct move {
    uint32_t op;
    bool writes;
    uint64_t begin, end;
};

struct softgpu_past {
    pthread_mutex_t lock;
    uint32_t uses[USES]; /* one op for each slot, oldest first */
    unsigned use_count;
    struct move moves[MOVES]; /* oldest first */
    unsigned move_count;
};

struct softgpu_past *softgpu_past_make(void) {
    struct softgpu_past *past = calloc(1, sizeof *past);
    if (past)
        pthread_mutex_init(&past->lock, NULL);
    return past;
}

struct softgpu_past *softgpu_past_of_host(void) {
    static struct softgpu_past host = {.lock = PTHREAD_MUTEX_INITIALIZER};
    return &host;
}

static bool is_of_one_slot(uint32_t a, uint32_t b) {
    return a == b || softgpu_op_at(a)->slot == softgpu_op_at(b)->slot;
}

static void remove_use(struct softgpu_past *past, unsigned n) {
    past->use_count--;
    memmove(&past->uses[n], &past->uses[n + 1], (past->use_count - n) * sizeof *past->uses);
}

static void note_use(struct softgpu_past *past, uint32_t op) {
    for (unsigned n = past->use_count; n-- > 0;)
        if (is_of_one_slot(past->uses[n], op))
            remove_use(past, n);
    for (unsigned n = past->use_count; n-- > 0 && past->use_count == USES;)
        if (softgpu_host_awaited(past->uses[n], SOFTGPU_LIBRARY))
            remove_use(past, n);
    if (past->use_count == USES)
        remove_use(past, 0);
    past->uses[past->use_count++] = op;
}

static uint32_t pending(const struct softgpu_past *past, const struct softgpu_clock *clock,
                        enum softgpu_waits waits, uint32_t but) {
    for (unsigned n = 0; n < past->use_count; n++) {
        uint32_t op = past->uses[n];
        if (op != but &&
            !(clock ? softgpu_is_over(op, clock, waits) : softgpu_host_awaited(op, waits)))
            return op;
    }
    return 0;
}

bool softgpu_past_use(struct softgpu_past *past, uint32_t op, const struct softgpu_clock *clock) {
    pthread_mutex_lock(&past->lock);
    if (!past->use_count || past->uses[past->use_count - 1] != op)
        note_use(past, op);
    bool others = pending(past, clock, SOFTGPU_LIBRARY, op) != 0;
    pthread_mutex_unlock(&past->lock);
    return others;
}

uint32_t softgpu_past_pending(struct softgpu_past *past, const struct softgpu_clock *clock,
                              enum softgpu_waits waits) {
    pthread_mutex_lock(&past->lock);
    uint32_t op = pending(past, clock, waits, 0);
    pthread_mutex_unlock(&past->lock);
    return op;
}

static void remove_move(struct softgpu_past *past, unsigned n) {
    past->move_count--;
    memmove(&past->moves[n], &past->moves[n + 1], (past->move_count - n) * sizeof *past->moves);
}

/* Returns whether a later access makes the record of an earlier access unnecessary. */
static bool stands_for(const struct move *later, const struct move *earlier) {
    return later->begin <= earlier->begin && earlier->end <= later->end &&
           (later->writes || !earlier->writes) && is_of_one_slot(later->op, earlier->op);
}

void softgpu_past_move(struct softgpu_past *past, uint32_t op, uint64_t va, uint64_t bytes,
                       bool writes) {
    const struct move move = {op, writes, va, va + bytes};
    pthread_mutex_lock(&past->lock);
    for (unsigned n = past->move_count; n-- > 0;)
        if (stands_for(&move, &past->moves[n]))
            remove_move(past, n);
    for (unsigned n = past->move_count; n-- > 0 && past->move_count == MOVES;)
        if (softgpu_host_awaited(past->moves[n].op, SOFTGPU_LIBRARY))
            remove_move(past, n);
    if (past->move_count == MOVES)
        remove_move(past, 0);
    past->moves[past->move_count++] = move;
    pthread_mutex_unlock(&past->lock);
}

uint32_t softgpu_past_conflict(struct softgpu_past *past, const struct softgpu_clock *clock,
                               uint64_t va, uint64_t bytes, bool writes, bool *other_writes) {
    uint32_t found = 0;
    pthread_mutex_lock(&past->lock);
    for (unsigned n = 0; n < past->move_count && !found; n++) {
        const struct move *move = &past->moves[n];
        if (va < move->end && move->begin < va + bytes && (writes || move->writes) &&
            !softgpu_is_over(move->op, clock, SOFTGPU_LIBRARY)) {
            found = move->op;
            *other_writes = move->writes;
        }
    }
    pthread_mutex_unlock(&past->lock);
    return found;
}
