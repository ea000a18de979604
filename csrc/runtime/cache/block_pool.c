#include "cache/block_pool.h"
#include "base/state.h"
#include "cache/ranges.h"
#include "cache/stream_pool.h"
#include "hip/hip.h"

#include <stdlib.h>

enum { BUCKET_BITS = 16, BUCKETS = 1 << BUCKET_BITS, POOLS_PER_SEARCH = 8 };

/* Of their own, not a handle_map's: a program may hold 100,000 blocks. */
static struct handle *buckets[BUCKETS];
static struct handle *all;

static struct block_pool device_pools[BLOCK_DEVICES];
static struct block_pool *stream_pools; /* of the streams that memory was ever freed on */
static struct block_pool *next_pool;    /* where the next search goes on; a hint */
uint64_t block_clock = 1;

/* Change on calls of HIP only, under tables_lock; in_use only while statistics are on. */
static struct {
    size_t reserved, peak_reserved, in_use, peak_in_use;
} accounts[BLOCK_DEVICES];

static size_t bucket_of(const void *address) {
    return ((uintptr_t)address / BLOCK_GRAIN * 0x9E3779B97F4A7C15u) >> (64 - BUCKET_BITS);
}

struct block *block_find(const void *address) {
    struct handle *entry = load_acquire(&buckets[bucket_of(address)]);
    while (entry && entry->key != address)
        entry = entry->next_in_bucket;
    return (struct block *)entry;
}

struct block_pool *block_device_pool(int device) {
    return &device_pools[device];
}

/* ---- pools ---- */

/* What was given back on a stream while it was this device's; NULL if nothing was. */
static struct block_pool *pool_on(const struct stream *stream, int device) {
    struct block_pool *pool = load_acquire(&stream_pools);
    while (pool && (pool->owner != stream || pool->device != device))
        pool = pool->next;
    return pool;
}

void block_stream_enters(struct stream *stream) {
    struct block_pool *pool = load_acquire(&stream->pool);
    if (!pool || pool->device != stream->device)
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
    *chain = block;
    pthread_mutex_unlock(&tables_lock);
}

bool block_put(struct block *block, struct stream *stream) {
    struct block_pool *pool =
        stream ? pool_of(stream, block->device) : &device_pools[block->device];
    if (UNLIKELY(!pool))
        return false;
    store_relaxed(&block->last_use, load_relaxed(&block_clock));
    store_relaxed(&block->stream, stream);
    store_relaxed(&block->mark, stream ? stream_next_mark(stream) : 0);
    struct block **ways = pool->ways[block_set(block->size)];
    for (int way = 0; way < POOL_WAYS; way++) {
        struct block *empty = NULL;
        if (!load_relaxed(&ways[way]) && cas_acq_rel(&ways[way], &empty, block))
            return true;
    }
    spill(pool, block);
    return true;
}

static bool is_idle(const struct block *block, const struct stream *owner) {
    return !owner || stream_has_passed(owner, load_relaxed(&block->mark));
}

/* Takes a block of this size out of the spilled ones; an idle one only, if `idle`. */
static struct block *take_spilled(struct block_pool *pool, size_t size, struct stream *owner,
                                  bool idle) {
    struct block **link = &pool->spilled[block_set(size)];
    if (!load_relaxed(link))
        return NULL;
    pthread_mutex_lock(&tables_lock);
    while (*link && ((*link)->size != size || (idle && !is_idle(*link, owner))))
        link = &(*link)->next_spilled;
    struct block *block = *link;
    if (block)
        *link = block->next_spilled;
    pthread_mutex_unlock(&tables_lock);
    return block;
}

/* An idle block of another stream's. Its size and mark are read before it is owned, and again
 * after: in between it may have been taken and given back anew. */
static struct block *take_idle(struct block_pool *pool, size_t size, struct stream *owner) {
    struct block **ways = pool->ways[block_set(size)];
    for (int way = 0; way < POOL_WAYS; way++) {
        struct block *block = load_acquire(&ways[way]);
        if (!block || block_size(block) != size || !is_idle(block, owner) ||
            !cas_acq_rel(&ways[way], &block, NULL))
            continue;
        if (LIKELY(block->size == size && is_idle(block, owner)))
            return block;
        (void)block_put(block, owner); /* a later mark than it needs: still safe */
    }
    return take_spilled(pool, size, owner, true);
}

static struct block *hand_out(struct block *block) {
    block_note_use(block);
    store_release(&block->state, BLOCK_LIVE);
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
    struct block *block = take_idle(pool, size, pool->owner);
    if (!block && stream_query_unheld(pool->owner))
        block = take_idle(pool, size, pool->owner);
    return block;
}

static struct block *search_streams(int device, size_t size, const struct stream *self) {
    struct block_pool *pool = load_acquire(&next_pool);
    struct block *block = NULL;
    for (int looked = 0; looked < POOLS_PER_SEARCH && !block; looked++) {
        if (!pool && !(pool = load_acquire(&stream_pools)))
            return NULL;
        if (pool->owner != self && pool->device == device)
            block = search_pool(pool, size);
        if (!block)
            pool = pool->next;
    }
    store_release(&next_pool, pool);
    return block;
}

struct block *block_search(int device, size_t size, struct stream *stream) {
    struct block_pool *pool = stream ? load_acquire(&stream->pool) : NULL;
    struct block *block = pool ? take_spilled(pool, size, stream, false) : NULL;
    if (!block)
        block = take_idle(&device_pools[device], size, NULL);
    if (!block)
        block = search_streams(device, size, stream);
    return block ? hand_out(block) : NULL;
}

/* ---- entering and leaving ---- */

static void add_reserved(int device, size_t bytes) {
    const size_t now = accounts[device].reserved + bytes;
    store_relaxed(&accounts[device].reserved, now);
    if (now > accounts[device].peak_reserved)
        accounts[device].peak_reserved = now;
}

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
    *link = block->next_spilled;
    return true;
}

/* Under tables_lock. */
static void leave(struct block *block) {
    if (block->state == BLOCK_GONE)
        return;
    const size_t now = accounts[block->device].reserved - block->size;
    store_relaxed(&accounts[block->device].reserved, now);
    ranges_remove((uintptr_t)block->handle.key);
    store_release(&block->state, BLOCK_GONE);
}

static bool unlink_cached(struct block *block, struct stream *stream) {
    struct block_pool *pool =
        stream ? pool_on(stream, block->device) : &device_pools[block->device];
    return pool && (unlink_way(pool, block) || unlink_spilled(pool, block));
}

/* HIP would not hand out memory of a block that it did not get back: the program has freed it by a
 * call of its own. */
static void forget_past(const void *address, size_t size) {
    void *begin;
    while ((begin = ranges_begin(address, size))) {
        struct block *block = block_find(begin);
        if (!block || block->state == BLOCK_GONE) {
            ranges_remove((uintptr_t)begin); /* managed, or registered */
            continue;
        }
        if (block->state == BLOCK_CACHED)
            (void)unlink_cached(block, block->stream);
        leave(block);
    }
}

bool block_enter(void *address, size_t size, int device) {
    pthread_mutex_lock(&tables_lock);
    struct block *block = block_find(address);
    if (!block && (block = calloc(1, sizeof *block))) {
        struct handle **bucket = &buckets[bucket_of(address)];
        block->handle = (struct handle){address, *bucket, all};
        block->state = BLOCK_GONE;
        store_release(bucket, &block->handle);
        store_release(&all, &block->handle);
    }
    if (block) {
        forget_past(address, size);
        leave(block);
        store_relaxed(&block_clock, block_clock + 1);
        store_relaxed(&block->size, size);
        store_relaxed(&block->entered, block_clock);
        store_relaxed(&block->device, device);
        block_note_use(block);
        block->stream = NULL;
        add_reserved(device, size);
        ranges_add((uintptr_t)address, size, RANGE_DEVICE);
        store_release(&block->state, BLOCK_LIVE);
    }
    pthread_mutex_unlock(&tables_lock);
    return block != NULL;
}

bool block_retire(struct block *block) {
    if (load_acquire(&block->state) != BLOCK_CACHED)
        return false;
    pthread_mutex_lock(&tables_lock);
    /* It may be on its way into a pool just now: then it is not found, and stays. */
    const bool owned = unlink_cached(block, load_relaxed(&block->stream));
    if (owned)
        leave(block);
    pthread_mutex_unlock(&tables_lock);
    return owned;
}

void block_forget(struct block *block) {
    pthread_mutex_lock(&tables_lock);
    leave(block);
    pthread_mutex_unlock(&tables_lock);
}

struct block *block_first(void) {
    return load_acquire((struct block **)&all);
}

struct block *block_around(const void *address) {
    pthread_mutex_lock(&tables_lock);
    const void *begin = ranges_begin(address, 1);
    pthread_mutex_unlock(&tables_lock);
    struct block *block = begin ? block_find(begin) : NULL;
    return block && block->state != BLOCK_GONE ? block : NULL;
}

bool block_confirm(const struct block *block) {
    void *begin = NULL;
    size_t size = 0;
    return hip.MemGetAddressRange(&begin, &size, (void *)(uintptr_t)block->handle.key) ==
               hipSuccess &&
           begin == block->handle.key && size >= block->size;
}

static void empty(struct block_pool *pool) {
    for (int set = 0; set < POOL_SETS; set++) {
        for (int way = 0; way < POOL_WAYS; way++)
            store_release(&pool->ways[set][way], NULL);
        pool->spilled[set] = NULL;
    }
}

void block_forget_all(void) {
    pthread_mutex_lock(&tables_lock);
    for (int device = 0; device < BLOCK_DEVICES; device++)
        empty(&device_pools[device]);
    for (struct block_pool *pool = stream_pools; pool; pool = pool->next)
        empty(pool);
    for (struct block *block = block_first(); block; block = (struct block *)block->handle.next)
        leave(block);
    pthread_mutex_unlock(&tables_lock);
}

/* ---- accounts ---- */

void block_count(int device, ptrdiff_t bytes) {
    const size_t now = add_fetch_relaxed(&accounts[device].in_use, (size_t)bytes);
    size_t peak = load_relaxed(&accounts[device].peak_in_use);
    while (bytes > 0 && now > peak && !cas_weak_relaxed(&accounts[device].peak_in_use, &peak, now))
        continue;
}

size_t block_reserved(int device) {
    return load_relaxed(&accounts[device].reserved);
}

struct block_account block_account(int device) {
    struct block_account account = {.reserved = block_reserved(device),
                                    .peak_reserved = accounts[device].peak_reserved,
                                    .peak_allocated = accounts[device].peak_in_use};
    if (!account.peak_reserved)
        return account;
    for (const struct block *block = block_first(); block;
         block = (const struct block *)block->handle.next) {
        const int state = load_acquire(&block->state);
        if (state == BLOCK_GONE || block_device(block) != device)
            continue;
        account.blocks++;
        account.cached_blocks += state == BLOCK_CACHED;
        account.allocated += state == BLOCK_LIVE ? block_size(block) : 0;
    }
    return account;
}
