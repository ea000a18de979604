#include "cache/blocks_waiting.h"
#include "base/proof.h"
#include "base/state.h"
#include "cache/streams_pool.h"

#include <stdlib.h>

uint64_t block_clock = 1;

/* As many blocks may wait on a device; a search looks at all of one size. */
enum { WAITING_MOST = 256 };

/* By device, the newest first; written under tables_lock, under which is what their blocks have to
 * wait for, too. */
static struct waiting {
    struct block *newest;
    size_t count;
} waiting[MOST_DEVICES];

/* ---- what a block waits for ---- */

static bool add_wait(struct block *block, struct stream *stream) {
    if (block->wait_count == block->wait_room) {
        const size_t room = block->wait_room ? 2 * block->wait_room : 4;
        struct wait *larger = realloc(block->waits, room * sizeof *larger);
        if (!larger)
            return false;
        block->waits = larger;
        block->wait_room = room;
    }
    block->waits[block->wait_count++] = (struct wait){stream, stream_next_mark(stream)};
    return true;
}

enum at_work block_list_at_work(struct block *block, const struct stream *stream) {
    block->wait_count = 0;
    for (struct stream *other = stream_first(); other; other = stream_next(other)) {
        if (other == stream || !stream_is_at_work(other) ||
            !PROOF(other_stream_is_of_the_device, load_relaxed(&other->device) == block->device))
            continue;
        if (stream_is_null(other) && stream_query_unheld(other))
            continue;
        if (!add_wait(block, other)) {
            block->wait_count = 0;
            return AT_WORK_UNKNOWN;
        }
    }
    return DOUBT(other_streams_are_at_work, block->wait_count) ? SOME_AT_WORK : NONE_AT_WORK;
}

/* All that was submitted at the free is done, or comes before what `stream` does next. */
static bool is_past(const struct stream *at_work, uint64_t mark, const struct stream *stream) {
    return at_work == stream || PROOF(work_at_the_free_is_done,
                                      stream_has_passed(at_work, mark) || stream_is_idle(at_work));
}

/* NULL if the block is ready, else a stream that it waits for. */
static struct stream *held_by(const struct block *block, const struct stream *stream) {
    if (block->stream &&
        !PROOF(own_stream_has_passed_too, is_past(block->stream, block->mark, stream)))
        return block->stream;
    for (size_t i = 0;
         i < PROOF_VALUE(every_other_stream_has_passed, block->wait_count, block->wait_count > 0);
         i++)
        if (!is_past(block->waits[i].stream, block->waits[i].mark, stream))
            return block->waits[i].stream;
    return NULL;
}

/* ---- the chain ---- */

void block_put_waiting(struct block *block, struct stream *stream) {
    struct waiting *chain = &waiting[block->device];
    store_relaxed(&block->last_use, load_relaxed(&block_clock));
    store_relaxed(&block->stream, stream);
    store_relaxed(&block->mark, stream_next_mark(stream));
    pthread_mutex_lock(&tables_lock);
    block->waits_now = true;
    block->next_spilled = chain->newest;
    store_relaxed(&chain->newest, block);
    store_relaxed(&chain->count, chain->count + 1);
    pthread_mutex_unlock(&tables_lock);
}

static struct block *unlink(struct waiting *chain, struct block **link) {
    struct block *block = *link;
    store_relaxed(link, block->next_spilled);
    store_relaxed(&chain->count, chain->count - 1);
    block->waits_now = false;
    return block;
}

void block_unlink_waiting(struct block *block) {
    struct waiting *chain = &waiting[block->device];
    struct block **link = &chain->newest;
    while (*link != block)
        link = &(*link)->next_spilled;
    (void)unlink(chain, link);
}

/* The first that is ready; else *holder is a stream that one of them waits for, or NULL. */
static struct block *take_ready(int device, size_t size, const struct stream *stream, bool shared,
                                struct stream **holder) {
    struct waiting *chain = &waiting[device];
    struct block *found = NULL;
    *holder = NULL;
    pthread_mutex_lock(&tables_lock);
    for (struct block **link = &chain->newest; *link && !found; link = &(*link)->next_spilled) {
        if ((*link)->size != size || (*link)->shared != shared)
            continue;
        *holder = held_by(*link, stream);
        if (!*holder) {
            found = unlink(chain, link);
            break;
        }
    }
    pthread_mutex_unlock(&tables_lock);
    return found;
}

struct block *block_take_waiting(int device, size_t size, const struct stream *stream,
                                 bool shared) {
    struct stream *holder;
    if (!load_relaxed(&waiting[device].newest))
        return NULL;
    struct block *block = take_ready(device, size, stream, shared, &holder);
    if (!block && holder && DOUBT(destroyed_stream_is_done, stream_query_unheld(holder)))
        block = take_ready(device, size, stream, shared, &holder);
    return block;
}

bool block_waiting_is_full(int device) {
    return DOUBT(too_many_blocks_wait, load_relaxed(&waiting[device].count) > WAITING_MOST);
}

struct block *block_take_settled(int device) {
    struct waiting *chain = &waiting[device];
    struct block *ready = NULL;
    pthread_mutex_lock(&tables_lock);
    for (struct block **link = &chain->newest; *link;) {
        if (held_by(*link, NULL)) {
            link = &(*link)->next_spilled;
            continue;
        }
        struct block *block = unlink(chain, link);
        block->next_spilled = ready;
        ready = block;
    }
    pthread_mutex_unlock(&tables_lock);
    return ready;
}
