#include "cache/blocks_pool.h"
#include "base/proof.h"
#include "base/state.h"
#include "cache/blocks_waiting.h"
#include "cache/streams_pool.h"

#include <stdlib.h>

enum { POOLS_PER_SEARCH = 8 };

static struct block_pool device_pools[MOST_DEVICES];
static struct block_pool shared_pools[MOST_DEVICES]; /* of managed memory, on any stream */
static struct block_pool *stream_pools; /* of the streams that memory was ever freed on */
static struct block_pool *next_pool;    /* where the next search goes on; a hint */

struct block_pool *block_device_pool(int device) {
    return &device_pools[device];
}

/* ---- pools ---- */

/* The pool of a stream's blocks while it was this device's; NULL if nothing was given back on
 * it. */
static struct block_pool *pool_on(const struct stream *stream, int device) {
    struct block_pool *pool = load_acquire(&stream_pools);
    while (pool && (pool->owner != stream || pool->device != device))
        pool = pool->next;
    return pool;
}

void block_stream_enters(struct stream *stream) {
    struct block_pool *pool = load_acquire(&stream->pool);
    if (DOUBT(handle_moved_to_another_device, !pool || pool->device != stream->device))
        cas_acq_rel(&stream->pool, &pool, pool_on(stream, stream->device));
}

/* The stream's pool, made at its first free. NULL without memory. */
static struct block_pool *pool_of(struct stream *stream, int device) {
    struct block_pool *pool = load_acquire(&stream->pool);
    if (LIKELY(pool))
        return pool;
    struct block_pool *fresh = calloc(1, sizeof *fresh);
    if (!fresh)
        return NULL;
    fresh->owner = stream;
    fresh->device = device;
    if (!cas_acq_rel_acquire(&stream->pool, &pool, fresh)) {
        free(fresh);
        return pool;
    }
    pthread_mutex_lock(&tables_lock);
    fresh->next = stream_pools;
    store_release(&stream_pools, fresh);
    pthread_mutex_unlock(&tables_lock);
    return fresh;
}

static void spill(struct block_pool *pool, struct block *block) {
    struct block **chain = &pool->spilled[block_set(block->size)];
    pthread_mutex_lock(&tables_lock);
    block->next_spilled = *chain;
    store_relaxed(chain, block);
    pthread_mutex_unlock(&tables_lock);
}

static inline void put(struct block *block, struct stream *stream, struct block_pool *pool) {
    store_relaxed(&block->last_use, load_relaxed(&block_clock));
    store_relaxed(&block->stream, stream);
    store_relaxed(&block->mark, stream ? stream_next_mark(stream) : 0);
    struct block **ways = pool->ways[block_set(block->size)];
    for (int way = 0; way < POOL_WAYS; way++) {
        struct block *empty = NULL;
        if (!load_relaxed(&ways[way]) && cas_acq_rel(&ways[way], &empty, block))
            return;
    }
    spill(pool, block);
}

bool block_put(struct block *block, struct stream *stream) {
    struct block_pool *pool =
        stream ? pool_of(stream, block->device) : &device_pools[block->device];
    if (UNLIKELY(!pool))
        return false;
    put(block, stream, pool);
    return true;
}

void block_put_shared(struct block *block, struct stream *stream) {
    put(block, stream,
        PROOF_VALUE(shared_block_goes_to_shared_memory, &shared_pools[block->device],
                    &device_pools[block->device]));
}

void block_put_idle(struct block *block) {
    put(block, NULL, block->shared ? &shared_pools[block->device] : &device_pools[block->device]);
}

static bool is_idle(const struct block *block) {
    const struct stream *stream = load_relaxed(&block->stream);
    return !stream ||
           PROOF(stream_has_passed_the_free, stream_has_passed(stream, load_relaxed(&block->mark)));
}

/* Takes a block of this size out of the spilled ones; an idle one only, if `idle`. */
static struct block *take_spilled(struct block_pool *pool, size_t size, bool idle) {
    struct block **link = &pool->spilled[block_set(size)];
    if (!load_relaxed(link))
        return NULL;
    pthread_mutex_lock(&tables_lock);
    while (*link && ((*link)->size != size || (idle && !is_idle(*link))))
        link = &(*link)->next_spilled;
    struct block *block = *link;
    if (block)
        store_relaxed(link, block->next_spilled);
    pthread_mutex_unlock(&tables_lock);
    return block;
}

/* An idle block. Its size, stream and mark are read before it is owned, and again after: in between
 * it may have been taken and given back anew. */
static struct block *take_idle(struct block_pool *pool, size_t size) {
    struct block **ways = pool->ways[block_set(size)];
    for (int way = 0; way < POOL_WAYS; way++) {
        struct block *block = load_acquire(&ways[way]);
        if (!block || block_size(block) != size || !is_idle(block) ||
            !cas_acq_rel(&ways[way], &block, NULL))
            continue;
        if (LIKELY(block->size == size && is_idle(block)))
            return block;
        put(block, block->stream, pool); /* a later mark than it needs: still safe */
    }
    return take_spilled(pool, size, true);
}

static struct block *hand_out_block(struct block *block) {
    block_note_use(block);
    store_release(&block->state, block->shared ? BLOCK_SHARED : BLOCK_LIVE);
    return block;
}

static bool holds_size(const struct block_pool *pool, size_t size) {
    for (int way = 0; way < POOL_WAYS; way++) {
        const struct block *block = load_acquire(&pool->ways[block_set(size)][way]);
        if (block && block_size(block) == size)
            return true;
    }
    return load_relaxed(&pool->spilled[block_set(size)]) != NULL;
}

static struct block *search_pool(struct block_pool *pool, size_t size) {
    if (!holds_size(pool, size))
        return NULL;
    struct block *block = take_idle(pool, size);
    if (!block && stream_query_unheld(pool->owner))
        block = take_idle(pool, size);
    return block;
}

static struct block *search_streams(int device, size_t size, const struct stream *self) {
    struct block_pool *pool = load_acquire(&next_pool);
    struct block *block = NULL;
    for (int looked = 0; looked < POOLS_PER_SEARCH && !block; looked++) {
        if (!pool && !(pool = load_acquire(&stream_pools)))
            return NULL;
        if (pool->owner != self && PROOF(block_is_of_the_device, pool->device == device))
            block = search_pool(pool, size);
        if (!block)
            pool = pool->next;
    }
    store_release(&next_pool, pool);
    return block;
}

struct block *block_search(int device, size_t size, struct stream *stream) {
    struct block_pool *pool = stream ? load_acquire(&stream->pool) : NULL;
    struct block *block = pool ? take_spilled(pool, size, false) : NULL;
    if (!block)
        block = block_take_waiting(device, size, stream, false);
    if (!block)
        block = take_idle(&device_pools[device], size);
    if (!block)
        block = search_streams(device, size, stream);
    return block ? hand_out_block(block) : NULL;
}

struct block *block_search_shared(int device, size_t size) {
    struct block *block = PROOF_VALUE(shared_block_is_idle, take_idle(&shared_pools[device], size),
                                      block_take(&shared_pools[device], size));
    if (!block)
        block = block_take_waiting(device, size, NULL, true);
    return block ? hand_out_block(block) : NULL;
}

/* ---- taking out, whatever is in it ---- */

static bool unlink_way(struct block_pool *pool, struct block *block) {
    struct block **ways = pool->ways[block_set(block->size)];
    for (int way = 0; way < POOL_WAYS; way++) {
        struct block *expected = block;
        if (cas_acq_rel(&ways[way], &expected, NULL))
            return true;
    }
    return false;
}

/* Under tables_lock. */
static bool unlink_spilled(struct block_pool *pool, const struct block *block) {
    struct block **link = &pool->spilled[block_set(block->size)];
    while (*link && *link != block)
        link = &(*link)->next_spilled;
    if (!*link)
        return false;
    store_relaxed(link, block->next_spilled);
    return true;
}

static struct block_pool *pool_holding(const struct block *block, const struct stream *stream) {
    if (DOUBT(cached_block_is_shared, block->shared))
        return &shared_pools[block->device];
    return stream ? pool_on(stream, block->device) : &device_pools[block->device];
}

bool block_unlink(struct block *block, struct stream *stream) {
    if (block->waits_now) {
        block_unlink_waiting(block);
        return true;
    }
    struct block_pool *pool = pool_holding(block, stream);
    return pool && (unlink_way(pool, block) || unlink_spilled(pool, block));
}

/* Under tables_lock. */
static void empty_pool(struct block_pool *pool) {
    for (int set = 0; set < POOL_SETS; set++) {
        for (int way = 0; way < POOL_WAYS; way++)
            store_release(&pool->ways[set][way], NULL);
        store_relaxed(&pool->spilled[set], NULL);
    }
}

void block_pools_empty(int which) {
    for (int device = 0; device < MOST_DEVICES; device++)
        if (of_device(which, device))
            empty_pool(&device_pools[device]);
    for (struct block_pool *pool = stream_pools; pool; pool = pool->next)
        if (of_device(which, pool->device))
            empty_pool(pool);
}
