#include "memory/blocks_pool.h"
#include "process/state.h"
#include "proof.h"
#include "streams/fences.h"
#include "streams/streams.h"
#include "streams/streams_pool.h"

#include <stdlib.h>

/* As many blocks may have several fences on a device: a search looks at all of one size. */
enum { POOLS_PER_SEARCH = 8, WAITING_MOST = 256 };

uint64_t block_clock = 1;

static struct block_pool device_pools[MOST_DEVICES];
static struct block_pool shared_pools[MOST_DEVICES]; /* of managed memory, on any stream */
static struct block_pool *stream_pools; /* of the streams that memory was ever freed on */
static struct block_pool *next_pool;    /* where the next search goes on; a hint */

/* ---- fences ---- */

static void set_fence(struct fence *fence, struct stream *stream) {
    store_relaxed(&fence->stream, stream);
    store_relaxed(&fence->number, stream_next_fence(stream));
}

/* The list ends after a fence. */
static void end_fences(struct fence *last) {
    if (last->next)
        store_relaxed(&last->next->stream, NULL);
}

void block_clear_fences(struct block *block) {
    store_relaxed(&block->fence.stream, NULL);
    end_fences(&block->fence);
}

static bool has_several_fences(const struct block *block) {
    const struct fence *second = load_acquire(&block->fence.next);
    return second && load_relaxed(&second->stream);
}

static __attribute__((noinline)) bool add_other_fences(struct block *block) {
    const int device = block->device;
    struct fence *last = &block->fence;
    for (struct stream *other = stream_first(); other; other = stream_next(other)) {
        if (other == block->fence.stream ||
            !DOUBT(other_streams_are_at_work, stream_is_at_work(other)) ||
            !PROOF(other_stream_is_of_the_device, load_relaxed(&other->device) == device) ||
            (stream_is_null(other) && stream_query_unheld(other)))
            continue;
        if (!last->next)
            store_release(&last->next, (struct fence *)calloc(1, sizeof *last));
        if (!last->next)
            return false;
        last = last->next;
        set_fence(last, other);
    }
    end_fences(last);
    return last == &block->fence ||
           !DOUBT(too_many_blocks_wait, load_relaxed(&device_pools[device].waiting) +
                                                load_relaxed(&shared_pools[device].waiting) >=
                                            WAITING_MOST);
}

/* Tells whether all fences of a block are done, or of `stream`, whose next work comes after them.
 * If not, *holder is a stream that the block waits for. A caller that does not own the block asks
 * again once it does: the block may have been taken and freed again. */
static bool is_ready(const struct block *block, const struct stream *stream,
                     struct stream **holder) {
    const struct fence *fence =
        PROOF_VALUE(own_stream_has_passed_too, &block->fence, load_acquire(&block->fence.next));
    while (fence) {
        struct stream *needed = load_relaxed(&fence->stream);
        if (!needed)
            return true;
        if (needed != stream && !PROOF(stream_has_passed_the_free,
                                       stream_fence_done(needed, load_relaxed(&fence->number)) ||
                                           stream_is_known_idle(needed))) {
            *holder = needed;
            return false;
        }
        fence = PROOF_VALUE(every_other_stream_has_passed, load_acquire(&fence->next),
                            fence == &block->fence ? fence->next : NULL);
    }
    return true;
}

/* ---- pools ---- */

/* The pool of a stream's blocks while it was this device's; NULL if nothing was freed on it. */
static struct block_pool *pool_on(const struct stream *stream, int device) {
    struct block_pool *pool = load_acquire(&stream_pools);
    while (pool && (pool->owner != stream || pool->device != device))
        pool = pool->next;
    return pool;
}

void block_pool_stream_begins(struct stream *stream) {
    struct block_pool *pool = load_acquire(&stream->pool);
    if (DOUBT(handle_moved_to_another_device, !pool || pool->device != stream->device))
        cas_acq_rel(&stream->pool, &pool, pool_on(stream, stream->device));
}

/* The stream's pool, made at its first free. NULL without memory. */
static __attribute__((noinline)) struct block_pool *make_pool(struct stream *stream, int device) {
    struct block_pool *pool = NULL;
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

static __attribute__((noinline)) void add_overflow(struct block_pool *pool, struct block *block) {
    struct block **chain = &pool->overflow[block_set(block->size)];
    pthread_mutex_lock(&tables_lock);
    store_relaxed(&pool->waiting, pool->waiting + has_several_fences(block));
    block->next_overflow = *chain;
    store_relaxed(chain, block);
    pthread_mutex_unlock(&tables_lock);
}

/* Takes a block out of its chain. It is ready, or leaves for good. Under tables_lock. */
static struct block *take_overflow(struct block_pool *pool, struct block **link) {
    struct block *block = *link;
    store_relaxed(link, block->next_overflow);
    store_relaxed(&pool->waiting, pool->waiting - has_several_fences(block));
    block_clear_fences(block);
    return block;
}

/* Removes the fences that are done, so that fewer blocks count as waiting. */
static void drop_done_fences(struct block_pool *pool) {
    struct stream *holder;
    if (!load_relaxed(&pool->waiting))
        return;
    pthread_mutex_lock(&tables_lock);
    for (int set = 0; set < POOL_SETS && pool->waiting; set++)
        for (struct block *block = pool->overflow[set]; block; block = block->next_overflow)
            if (has_several_fences(block) && is_ready(block, NULL, &holder)) {
                block_clear_fences(block);
                store_relaxed(&pool->waiting, pool->waiting - 1);
            }
    pthread_mutex_unlock(&tables_lock);
}

void block_fence_idle(struct block *block) {
    block_clear_fences(block);
    drop_done_fences(&device_pools[block->device]);
    drop_done_fences(&shared_pools[block->device]);
}

bool block_fence(struct block *block, struct stream *stream, bool care) {
    set_fence(&block->fence, stream);
    return LIKELY(!care) || add_other_fences(block);
}

void block_pool_put(struct block *block) {
    struct stream *stream = block->fence.stream;
    const bool several = has_several_fences(block);
    struct block_pool *pool = NULL;
    if (LIKELY(stream && !several && !block->shared)) {
        pool = load_acquire(&stream->pool);
        if (UNLIKELY(!pool))
            pool = make_pool(stream, block->device);
    }
    if (UNLIKELY(!pool))
        pool = DOUBT(shared_block_goes_to_shared_memory, block->shared)
                   ? &shared_pools[block->device]
                   : &device_pools[block->device];
    store_relaxed(&block->last_use, load_relaxed(&block_clock));
    struct block **ways = pool->ways[block_set(block->size)];
    for (int way = 0; way < POOL_WAYS && LIKELY(!several); way++) {
        struct block *empty = NULL;
        if (!load_relaxed(&ways[way]) && cas_acq_rel(&ways[way], &empty, block))
            return;
    }
    add_overflow(pool, block);
}

/* Takes a block of this size that is ready for work in the order of `stream`. NULL if there is
 * none; then *holder is a stream that one of them waits for. */
static struct block *take_ready(struct block_pool *pool, size_t size, const struct stream *stream,
                                struct stream **holder) {
    const size_t set = block_set(size);
    for (int way = 0; way < POOL_WAYS; way++) {
        struct block *block = load_acquire(&pool->ways[set][way]);
        if (!block || block_size(block) != size || !is_ready(block, stream, holder))
            continue;
        block = block_pool_take_way(&pool->ways[set][way], size);
        if (LIKELY(block && is_ready(block, stream, holder)))
            return block;
        if (block)
            block_pool_put(block);
    }
    struct block **link = &pool->overflow[set], *block = NULL;
    if (!load_relaxed(link))
        return NULL;
    pthread_mutex_lock(&tables_lock);
    while (*link && ((*link)->size != size || !is_ready(*link, stream, holder)))
        link = &(*link)->next_overflow;
    if (*link)
        block = take_overflow(pool, link);
    pthread_mutex_unlock(&tables_lock);
    return block;
}

/* Asks HIP about a stream that nobody holds and that a block waits for. */
static struct block *take_after_asking(struct block_pool *pool, size_t size,
                                       const struct stream *stream) {
    struct stream *holder = NULL;
    struct block *block = take_ready(pool, size, stream, &holder);
    if (!block && holder && DOUBT(destroyed_stream_is_done, stream_query_unheld(holder)))
        block = take_ready(pool, size, stream, &holder);
    return block;
}

struct block *block_pool_search(int device, size_t size, struct stream *stream, bool shared) {
    struct block_pool *own = stream ? load_acquire(&stream->pool) : NULL, *pool;
    struct block *block = NULL;
    if (shared)
        return PROOF_VALUE(shared_block_is_idle,
                           take_after_asking(&shared_pools[device], size, NULL),
                           block_pool_take_own(&shared_pools[device], size));
    if (own)
        block = take_after_asking(own, size, stream);
    if (!block)
        block = take_after_asking(&device_pools[device], size, stream);
    pool = load_acquire(&next_pool);
    for (int looked = 0; looked < POOLS_PER_SEARCH && !block; looked++) {
        if (!pool && !(pool = load_acquire(&stream_pools)))
            return NULL;
        if (pool != own && PROOF(block_is_of_the_device, pool->device == device))
            block = take_after_asking(pool, size, stream);
        if (!block)
            pool = pool->next;
        store_release(&next_pool, pool);
    }
    return block;
}

/* ---- taking out, whatever is in it ---- */

/* Under tables_lock. */
static bool unlink_from(struct block_pool *pool, struct block *block) {
    const size_t set = block_set(block->size);
    for (int way = 0; way < POOL_WAYS; way++) {
        struct block *expected = block;
        if (cas_acq_rel(&pool->ways[set][way], &expected, NULL))
            return true;
    }
    struct block **link = &pool->overflow[set];
    while (*link && *link != block)
        link = &(*link)->next_overflow;
    return *link && take_overflow(pool, link);
}

/* A block of a stream lies with the device if there was no memory for a pool of the stream's. */
bool block_unlink(struct block *block) {
    const struct stream *stream = load_relaxed(&block->fence.stream);
    if (DOUBT(cached_block_is_shared, block->shared))
        return unlink_from(&shared_pools[block->device], block);
    struct block_pool *pool = stream ? pool_on(stream, block->device) : NULL;
    return (pool && unlink_from(pool, block)) || unlink_from(&device_pools[block->device], block);
}

/* Under tables_lock. */
static void empty_pool(struct block_pool *pool) {
    for (int set = 0; set < POOL_SETS; set++) {
        for (int way = 0; way < POOL_WAYS; way++)
            store_release(&pool->ways[set][way], NULL);
        store_relaxed(&pool->overflow[set], NULL);
    }
    store_relaxed(&pool->waiting, 0);
}

void block_pools_empty(int which) {
    for (int device = 0; device < MOST_DEVICES; device++)
        if (of_device(which, device))
            empty_pool(&device_pools[device]);
    for (struct block_pool *pool = stream_pools; pool; pool = pool->next)
        if (of_device(which, pool->device))
            empty_pool(pool);
}
