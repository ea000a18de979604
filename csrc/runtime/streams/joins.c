#include "streams/joins.h"
#include "streams/streams.h"

#include <stdlib.h>

/* A join of a join of a join: MOST_STEPS joins may lie between two streams. */
enum { MOST_JOINS = 8, MOST_STEPS = 2 };

/* The streams that have joined a stream. Threads read without a lock: a reader drops what it has
 * found if `version` has changed. Writers hold tables_lock. */
struct joins {
    uint64_t version; /* odd while a thread writes */
    unsigned next;    /* the oldest join */
    struct join {
        struct stream *by; /* NULL: unused */
        uint64_t own;      /* a number of `by`: all later work of `by` follows the point */
        uint64_t number;   /* of the joined stream: the point */
    } of[MOST_JOINS];
};

/* ---- points ---- */

struct point join_point(struct stream *stream) {
    if (!stream || stream_state(stream) != STREAM_LIVE ||
        DOUBT(a_stream_may_be_captured, runtime_is(MODE_EXTERNAL)) || !sole_user_so_far())
        return (struct point){.stream = NULL};
    return (struct point){stream, stream_last(stream)};
}

void join_recorded(struct stream *stream, struct point *point) {
    if (!point->stream) {
        stream_submitted(stream);
        return;
    }
    const uint64_t number = stream_submitted_after(stream, point->number);
    if (number)
        point->number = number;
    else /* another thread has submitted work: before or after the record */
        stream_launched(stream);
}

/* ---- joins ---- */

/* Returns true if the join was made by the stream that the handle of `by` has now. */
static bool is_of_this_life(const struct stream *by, uint64_t own) {
    return own > load_acquire(&by->born);
}

/* Returns the join that a new join of `by` replaces: an older join of `by`, an unused one, or the
 * oldest. Under tables_lock. */
static struct join *join_to_replace(struct joins *joins, const struct stream *by) {
    struct join *unused = NULL;
    for (int i = 0; i < MOST_JOINS; i++) {
        if (joins->of[i].by == by)
            return &joins->of[i];
        if (!joins->of[i].by && !unused)
            unused = &joins->of[i];
    }
    return unused ? unused : &joins->of[joins->next++ % MOST_JOINS];
}

/* Under tables_lock. */
static void write_join(struct joins *joins, struct stream *by, uint64_t own,
                       const struct point *point) {
    struct join *join = join_to_replace(joins, by);
    if (join->by == by && join->number >= point->number && is_of_this_life(by, join->own))
        return;
    store_relaxed(&joins->version, joins->version + 1);
    store_release(&join->by, by);
    store_release(&join->own, own);
    store_release(&join->number, point->number);
    store_release(&joins->version, joins->version + 1);
}

void join_add(struct stream *stream, const struct point *point) {
    struct stream *joined = point->stream;
    if (joined == stream || stream_state(stream) != STREAM_LIVE ||
        load_relaxed(&joined->device) != load_relaxed(&stream->device))
        return;
    const uint64_t own = load_acquire(&stream->submitted); /* HIP has the wait for the event */
    struct joins *fresh = load_acquire(&joined->joins) ? NULL : calloc(1, sizeof *fresh);
    pthread_mutex_lock(&tables_lock);
    if (!joined->joins) {
        store_release(&joined->joins, fresh);
        fresh = NULL;
    }
    if (joined->joins)
        write_join(joined->joins, stream, own, point);
    pthread_mutex_unlock(&tables_lock);
    free(fresh);
}

/* Returns true if a join of `stream` at the fence or later proves what join_proves returns. */
static bool proves(const struct stream *stream, uint64_t fence, const struct stream *order,
                   int steps) {
    const struct joins *joins = load_acquire(&stream->joins);
    if (!joins)
        return false;
    const uint64_t version = load_acquire(&joins->version);
    bool found = false;
    for (int i = 0; i < MOST_JOINS && !found; i++) {
        const struct stream *by = load_acquire(&joins->of[i].by);
        const uint64_t own = load_acquire(&joins->of[i].own);
        found = by && PROOF(join_follows_the_fence, load_acquire(&joins->of[i].number) >= fence) &&
                (by == order || stream_fence_done(by, own) ||
                 (steps && proves(by, own, order, steps - 1))) &&
                PROOF(join_is_of_this_life, is_of_this_life(by, own));
    }
    return found && version % 2 == 0 && load_relaxed(&joins->version) == version;
}

bool join_proves(const struct stream *stream, uint64_t fence, const struct stream *order) {
    return proves(stream, fence, order, MOST_STEPS);
}

bool join_proves_all(struct stream *stream, const struct stream *order) {
    const uint64_t last = load_acquire(&stream->submitted);
    if (!join_proves(stream, last, order))
        return false;
    if (join_proves(stream, last, NULL))
        stream_complete(stream, last); /* later frees need not look at the joins */
    return true;
}
