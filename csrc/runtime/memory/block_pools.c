/* Keeps idle blocks in pools, sets the fences of freed blocks, and searches the pools. */
#include "memory/block_pools.h"
#include "streams/held.h"
#include "streams/joins.h"
#include "streams/streams_pool.h"

#include <stdlib.h>

/* A search visits the blocks that have several fences. So the pools of a device hold at most
 * WAITING_MOST of them. */
enum { POOLS_PER_SEARCH = 8, QUESTIONS_PER_SEARCH = 2, WAITING_MOST = 256 };

/* The list of a pool for blocks with several fences. No size has this list. */
enum { WAITING_LIST = 0 };

uint64_t block_clock = 1;

static struct block_pool device_pools[MOST_DEVICES];
static struct block_pool shared_pools[MOST_DEVICES]; /* for managed memory, whose blocks any stream
                                                      * may use */
/* The lists of the pools above, for which there is always memory. */
static struct block_lists device_lists[MOST_DEVICES][POOL_LISTS / LISTS_A_GROUP];
static struct block_lists shared_lists[MOST_DEVICES][POOL_LISTS / LISTS_A_GROUP];
static struct block_pool *stream_pools; /* the pools of all streams on which the program has freed
                                         * memory */
static struct block_pool *next_pool;    /* the pool where the next search starts */

/* ---- fences ---- */

static void set_fence(struct fence *fence, struct stream *stream) {
    store_relaxed(&fence->stream, stream);
    store_relaxed(&fence->number, stream_fence(stream));
}

/* Truncates the list of fences after `last`. */
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

/* Returns true if the block must wait for the work of a stream that is not idle. */
static bool needs_fence(const struct block *block, struct stream *other) {
    return DOUBT(other_streams_are_at_work, stream_is_at_work(other)) &&
           !(PROOF(no_other_code_worked_on_joined_streams, sole_user_so_far()) &&
             join_proves_all(other, block->fence.stream)) &&
           (PROOF(other_stream_is_of_the_device, load_relaxed(&other->device) == block->device) ||
            DOUBT(other_stream_was_replaced, !stream_keeps_device(other)));
}

static __attribute__((noinline)) bool add_other_fences(struct block *block) {
    const int device = block->device;
    struct fence *last = &block->fence;
    int idle = 0;
    for (struct stream *other = stream_first_listed(); other; other = stream_next_listed(other)) {
        if (stream_is_idle(other)) {
            idle++;
            continue;
        }
        if (other == block->fence.stream || !needs_fence(block, other))
            continue;
        if (!last->next)
            store_release(&last->next, (struct fence *)calloc(1, sizeof *last));
        if (!last->next)
            return false;
        last = last->next;
        set_fence(last, other);
    }
    end_fences(last);
    if (UNLIKELY(idle > IDLE_LISTED_MOST))
        stream_sweep_list();
    return last == &block->fence ||
           !DOUBT(too_many_blocks_wait, load_relaxed(&device_pools[device].waiting) +
                                                load_relaxed(&shared_pools[device].waiting) >=
                                            WAITING_MOST);
}

bool block_set_fences(struct block *block, struct stream *stream, bool others) {
    set_fence(&block->fence, stream);
    return LIKELY(!others) || !(load_relaxed(&care_of_frees) & CARE_SEVERAL_STREAMS) ||
           add_other_fences(block);
}

/* Returns true if the next work of `stream` may use a block. Each fence of the block is then done
 * or belongs to `stream`. If a fence is not done, sets *holder to the stream of that fence. If the
 * caller does not own the block, another thread may reuse the block at any time. Such a caller must
 * first take the block, and then call this function again. */
static bool is_ready(const struct block *block, const struct stream *stream,
                     struct stream **holder) {
    const struct fence *fence =
        PROOF_VALUE(own_stream_has_passed_too, &block->fence, load_acquire(&block->fence.next));
    while (fence) {
        struct stream *needed = load_relaxed(&fence->stream);
        if (!needed)
            return true;
        if (needed != stream &&
            !PROOF(stream_has_passed_the_free,
                   stream_fence_done(needed, load_relaxed(&fence->number)) ||
                       join_proves(needed, load_relaxed(&fence->number), stream))) {
            *holder = needed;
            return false;
        }
        fence = PROOF_VALUE(every_other_stream_has_passed, load_acquire(&fence->next),
                            fence == &block->fence ? fence->next : NULL);
    }
    return true;
}

/* ---- pools ---- */

/* Returns the pool of a stream's blocks; NULL if the stream has no pool on this device. */
static struct block_pool *pool_on(const struct stream *stream, int device) {
    struct block_pool *pool = load_acquire(&stream->pools);
    while (pool && pool->device != device)
        pool = pool->next_of_owner;
    return pool;
}

/* Creates and returns a stream's pool at the first free on the stream. Returns NULL if there is no
 * memory for the pool. */
static __attribute__((noinline)) struct block_pool *make_pool(struct stream *stream, int device) {
    struct block_pool *pool = NULL;
    struct block_pool *fresh = pool_on(stream, device); /* of an earlier stream of the handle */
    if (fresh)
        return cas_acq_rel_acquire(&stream->pool, &pool, fresh) ? fresh : pool;
    fresh = calloc(1, sizeof *fresh);
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
    fresh->next_of_owner = stream->pools;
    store_release(&stream->pools, fresh);
    pthread_mutex_unlock(&tables_lock);
    /* A program that leaves its streams behind frees its blocks on the newest. */
    PROOF_STEP(search_begins_at_a_new_pool, store_release(&next_pool, fresh));
    return fresh;
}

/* Returns the number of a size's list, below POOL_LISTS and never 0. Sizes that share a
 * list differ by less than an eighth; only sizes for which block_size_is_exact returns true do. */
static size_t list_of_size(size_t size) {
    enum { SMALL = BLOCK_EXACT_UP_TO / BLOCK_GRAIN, LOG = 16 }; /* 2^16 is BLOCK_EXACT_UP_TO */
    if (size <= BLOCK_EXACT_UP_TO)
        return size / BLOCK_GRAIN;
    const int log = 63 - __builtin_clzll(size);
    return SMALL + (size_t)(log - LOG) * 8 + (size >> (log - 3)) % 8;
}

static size_t list_of(const struct block *block) {
    return has_several_fences(block) ? WAITING_LIST : list_of_size(block->size);
}

/* Returns the newest block of a list; NULL if the list is empty. */
static struct block *newest_of(const struct block_pool *pool, size_t list) {
    const struct block_lists *lists = load_acquire(&pool->groups[list / LISTS_A_GROUP]);
    return lists ? load_relaxed(&lists->newest[list % LISTS_A_GROUP]) : NULL;
}

/* Gives a pool the group of lists that a block needs, and returns the pool. If there is no memory
 * for a stream's group, returns the pool of the block's device. Allocates for a stream, so the
 * caller does not hold tables_lock: no allocator is called under that lock. */
static __attribute__((noinline, cold)) struct block_pool *with_group(struct block_pool *pool,
                                                                     const struct block *block) {
    const size_t group = list_of(block) / LISTS_A_GROUP;
    struct block_lists *none = NULL, *fresh = pool->owner ? calloc(1, sizeof *fresh) : NULL;
    if (!fresh) {
        pool = block->shared ? &shared_pools[block->device] : &device_pools[block->device];
        fresh = &(block->shared ? shared_lists : device_lists)[block->device][group];
    }
    if (!cas_acq_rel_acquire(&pool->groups[group], &none, fresh) && pool->owner)
        free(fresh);
    return pool;
}

/* Makes a block the newest of its list. Returns false if the pool has no such list yet. Under
 * tables_lock. */
static bool add_to_list(struct block_pool *pool, struct block *block) {
    const size_t list = list_of(block), at = list % LISTS_A_GROUP;
    struct block_lists *const lists = pool->groups[list / LISTS_A_GROUP];
    if (UNLIKELY(!lists))
        return false;
    struct block *const older = lists->newest[at] ? lists->newest[at] : block;
    struct block *const newer = older == block ? block : older->newer;
    block->pool = pool;
    block->older = older;
    block->newer = newer;
    older->newer = newer->older = block;
    store_relaxed(&lists->newest[at], block);
    lists->filled |= UINT64_C(1) << at;
    if (list == WAITING_LIST)
        store_relaxed(&pool->waiting, pool->waiting + 1);
    return true;
}

/* Removes a block from its list, and clears its fences. The caller then owns the block. Under
 * tables_lock. */
static void take_from_list(struct block *block) {
    struct block_pool *const pool = block->pool;
    const size_t list = list_of(block), at = list % LISTS_A_GROUP;
    struct block_lists *const lists = pool->groups[list / LISTS_A_GROUP];
    const bool is_last = block->older == block;
    block->older->newer = block->newer;
    block->newer->older = block->older;
    if (lists->newest[at] == block)
        store_relaxed(&lists->newest[at], is_last ? NULL : block->older);
    if (is_last)
        lists->filled &= ~(UINT64_C(1) << at);
    if (list == WAITING_LIST)
        store_relaxed(&pool->waiting, pool->waiting - 1);
    block->pool = NULL;
    block_clear_fences(block);
}

/* Returns the first list from `list` on that has blocks; POOL_LISTS if there is none. Under
 * tables_lock. */
static size_t next_filled(const struct block_pool *pool, size_t list) {
    for (; list < POOL_LISTS; list = (list / LISTS_A_GROUP + 1) * LISTS_A_GROUP) {
        const struct block_lists *lists = pool->groups[list / LISTS_A_GROUP];
        const uint64_t filled = lists ? lists->filled >> list % LISTS_A_GROUP : 0;
        if (filled)
            return list + (size_t)__builtin_ctzll(filled);
    }
    return POOL_LISTS;
}

static __attribute__((noinline)) void put_into_list(struct block_pool *pool, struct block *block) {
    pthread_mutex_lock(&tables_lock);
    while (UNLIKELY(!add_to_list(pool, block))) {
        pthread_mutex_unlock(&tables_lock);
        pool = with_group(pool, block);
        pthread_mutex_lock(&tables_lock);
    }
    pthread_mutex_unlock(&tables_lock);
}

/* Moves each block of a device's pool whose fences are done out of the list of blocks with several
 * fences. */
static void drop_done_fences(struct block_pool *pool) {
    struct stream *holder;
    if (!load_relaxed(&pool->waiting))
        return;
    pthread_mutex_lock(&tables_lock);
    struct block *block = newest_of(pool, WAITING_LIST);
    for (size_t left = pool->waiting; left; left--) {
        struct block *const older = block->older;
        if (is_ready(block, NULL, &holder)) {
            take_from_list(block);
            while (!add_to_list(pool, block))
                (void)with_group(pool, block); /* a device's, which allocates nothing */
        }
        block = older;
    }
    pthread_mutex_unlock(&tables_lock);
}

void block_device_is_idle(struct block *block) {
    block_clear_fences(block);
    drop_done_fences(&device_pools[block->device]);
    drop_done_fences(&shared_pools[block->device]);
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
    put_into_list(pool, block);
}

/* ---- taking any block out of a pool ---- */

/* Under tables_lock. */
static bool take_from_ways(struct block_pool *pool, struct block *block) {
    const size_t set = block_set(block->size);
    for (int way = 0; way < POOL_WAYS; way++) {
        struct block *expected = block;
        if (cas_acq_rel(&pool->ways[set][way], &expected, NULL))
            return true;
    }
    return false;
}

/* If there was no memory for a stream's pool, the stream's blocks are in the device's pool. */
bool block_unlink(struct block *block) {
    const struct stream *stream = load_relaxed(&block->fence.stream);
    if (block->pool) {
        take_from_list(block);
        return true;
    }
    if (DOUBT(cached_block_is_shared, block->shared))
        return take_from_ways(&shared_pools[block->device], block);
    struct block_pool *pool = stream ? load_acquire(&stream->pool) : NULL;
    if (UNLIKELY(stream && (!pool || pool->device != block->device)))
        pool = pool_on(stream, block->device);
    return (pool && take_from_ways(pool, block)) ||
           take_from_ways(&device_pools[block->device], block);
}

/* Under tables_lock. */
static void empty_pool(struct block_pool *pool) {
    for (int set = 0; set < POOL_SETS; set++)
        for (int way = 0; way < POOL_WAYS; way++)
            store_release(&pool->ways[set][way], NULL);
    for (size_t list = 0; (list = next_filled(pool, list)) < POOL_LISTS;)
        take_from_list(newest_of(pool, list));
}

void block_empty_pools(int device) {
    for (int each = 0; each < MOST_DEVICES; each++)
        if (of_device(device, each)) {
            empty_pool(&device_pools[each]);
            empty_pool(&shared_pools[each]);
        }
    for (struct block_pool *pool = stream_pools; pool; pool = pool->next)
        if (of_device(device, pool->device))
            empty_pool(pool);
}

/* ---- searching ---- */

/* A block of `least` to `most` bytes for the next work of `stream`. */
struct wanted {
    size_t least, most;
    const struct stream *stream;
    struct stream **holder; /* if such a block waits for a stream, gets that stream */
};

/* Returns a wanted block of a list; NULL if none was found. The newest block comes first, so that
 * blocks of which the program has too many grow old and leave. If the pool belongs to another
 * stream, its oldest block is ready first. The list of blocks with several fences has all sizes,
 * and its smallest wanted block is returned. Under tables_lock. */
static struct block *find_in_list(const struct block_pool *pool, size_t list,
                                  const struct wanted *wanted) {
    struct block *const newest = newest_of(pool, list);
    const bool is_of_another_stream = pool->owner && pool->owner != wanted->stream;
    struct block *block = newest && is_of_another_stream ? newest->newer : newest, *found = NULL;
    size_t most = wanted->most;
    for (int looked = is_of_another_stream ? WAITING_MOST : 1; block; looked++) {
        if (block->size >= wanted->least && block->size <= most &&
            is_ready(block, wanted->stream, wanted->holder)) {
            found = block;
            if (list != WAITING_LIST || block->size == wanted->least)
                break;
            most = block->size - 1;
        }
        block = looked < WAITING_MOST && block->older != newest ? block->older : NULL;
    }
    return found;
}

/* Takes a block of this size that the next work of `stream` may use. Returns NULL if no block of
 * this size is ready. If a block of this size waits for a stream, *holder is then that stream. */
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
    const size_t list = list_of_size(size);
    if (!newest_of(pool, list) && !load_relaxed(&pool->waiting))
        return NULL;
    pthread_mutex_lock(&tables_lock);
    const struct wanted wanted = {size, size, stream, holder};
    struct block *block = find_in_list(pool, list, &wanted);
    if (!block)
        block = find_in_list(pool, WAITING_LIST, &wanted);
    if (block)
        take_from_list(block);
    pthread_mutex_unlock(&tables_lock);
    return block;
}

/* The state of a search through several pools. */
struct search {
    int questions; /* number of questions that are left */
    bool waits;    /* a block of the size waits for a stream */
};

/* Asks HIP about a stream. Returns true if more of the stream's work is known to be done than
 * before. */
static bool query_holder(struct stream *holder, struct search *search) {
    bool asked = false;
    const bool learned = DOUBT(destroyed_stream_is_done, stream_query_unheld(holder, &asked)) ||
                         DOUBT(held_stream_is_done, stream_query_held(holder, &asked));
    search->questions -= asked;
    return learned;
}

/* Does the work of take_ready. If no block is ready, asks HIP about the stream that a block waits
 * for, and tries again. If a block is ready while another block waits, asks once, so that the other
 * block is ready when the program needs it. A search asks at most QUESTIONS_PER_SEARCH questions.
 */
static struct block *take_after_asking(struct block_pool *pool, size_t size,
                                       const struct stream *stream, struct search *search) {
    struct stream *holder = NULL, *before = NULL;
    struct block *block = take_ready(pool, size, stream, &holder);
    while (!block && holder && holder != before && search->questions > 0 &&
           query_holder(holder, search)) {
        before = holder;
        holder = NULL;
        block = take_ready(pool, size, stream, &holder);
    }
    if (block && holder && holder != before && search->questions > 0)
        (void)query_holder(holder, search);
    search->waits |= holder != NULL;
    return block;
}

/* Takes a block of this size that is ready for the next work of `stream`. If `stream` is NULL, the
 * block is ready for work on any stream. If `shared` is true, searches only the device's pool of
 * shared blocks. Otherwise searches the stream's pool, the device's pool and at most 8 pools of
 * other streams. The next search continues at the pool where this search ended. Returns NULL if no
 * block is ready. */
static struct block *search_pools(int device, size_t size, struct stream *stream, bool shared,
                                  struct search *search) {
    struct block_pool *own = stream ? load_acquire(&stream->pool) : NULL, *pool;
    struct block *block = NULL;
    if (shared)
        return PROOF_VALUE(shared_block_is_idle,
                           take_after_asking(&shared_pools[device], size, NULL, search),
                           block_pool_take_own(&shared_pools[device], size));
    if (own)
        block = take_after_asking(own, size, stream, search);
    if (!block)
        block = take_after_asking(&device_pools[device], size, stream, search);
    pool = load_acquire(&next_pool);
    for (int looked = 0; looked < POOLS_PER_SEARCH && !block; looked++) {
        if (!pool && !(pool = load_acquire(&stream_pools)))
            return NULL;
        if (pool != own && PROOF(block_is_of_the_device, pool->device == device))
            block = take_after_asking(pool, size, stream, search);
        if (!block)
            pool = pool->next;
        store_release(&next_pool, pool);
    }
    return block;
}

struct block *block_search_pools(size_t size, int device, struct stream *stream, bool shared,
                                 bool *waits) {
    struct search search = {QUESTIONS_PER_SEARCH, false};
    struct block *block = search_pools(device, size, stream, shared, &search);
    *waits = search.waits;
    return block;
}

/* ---- larger blocks ----
 *
 * A miss may take an idle block of up to MOST_LARGER / 2 times the size. A request of at most
 * BLOCK_EXACT_UP_TO bytes takes only a block above BLOCK_EXACT_UP_TO, of up to MOST_FOR_SMALL times
 * the size. A smaller block has no record of the bytes for which the program asked. A size gets a
 * block of its own after PATIENCE allocations from larger blocks, so that a program with fixed
 * sizes soon hits. bench/results/blocks.md says why these numbers. */
enum { MOST_LARGER = 7, MOST_FOR_SMALL = 16, PATIENCE = UINT8_MAX };

/* How many allocations of a size got a larger block since HIP last allocated that size. */
static unsigned char *larger_count(int device, size_t size) {
    static unsigned char counts[MOST_DEVICES][POOL_LISTS];
    return &counts[device][list_of_size(size)];
}

/* Returns the smallest ready block in a pool's lists that is larger than `size`, and has at most
 * `most` bytes; NULL if there is none. Under tables_lock. */
static struct block *find_larger(const struct block_pool *pool, size_t size, size_t most,
                                 const struct stream *stream) {
    struct stream *holder;
    struct wanted wanted = {size + 1, most, stream, &holder};
    struct block *found = NULL;
    for (size_t list = next_filled(pool, list_of_size(size) + 1);
         list <= list_of_size(most) && !found; list = next_filled(pool, list + 1))
        found = find_in_list(pool, list, &wanted);
    if (found)
        wanted.most = found->size - 1;
    struct block *const other = find_in_list(pool, WAITING_LIST, &wanted);
    return other ? other : found;
}

/* Takes the smallest block of a pool that is larger than `size`, at most `most` bytes, and ready
 * for the next work of `stream`. Returns NULL if there is none. */
static struct block *take_larger(struct block_pool *pool, size_t size, size_t most,
                                 const struct stream *stream) {
    struct stream *holder;
    struct block **smallest = NULL, *block = NULL;
    size_t found = most + 1;
    for (int i = 0; i < POOL_SETS * POOL_WAYS; i++) {
        struct block **way = &pool->ways[i / POOL_WAYS][i % POOL_WAYS];
        const struct block *here = load_acquire(way);
        const size_t bytes = here ? block_size(here) : 0;
        if (bytes <= size || bytes >= found || !is_ready(here, stream, &holder))
            continue;
        smallest = way;
        found = bytes;
    }
    pthread_mutex_lock(&tables_lock);
    block = find_larger(pool, size, found - 1, stream);
    if (block)
        take_from_list(block);
    pthread_mutex_unlock(&tables_lock);
    if (block || !smallest)
        return block;
    block = block_pool_take_way(smallest, found);
    if (!block || is_ready(block, stream, &holder))
        return block;
    block_pool_put(block);
    return NULL;
}

/* The function searches only the newest of the pools of other streams. */
struct block *block_search_larger(size_t size, int device, struct stream *stream, bool shared) {
    const bool is_small = size <= BLOCK_EXACT_UP_TO;
    const size_t least =
        is_small ? PROOF_VALUE(larger_block_records_the_request, BLOCK_EXACT_UP_TO, size) : size;
    const size_t most = is_small ? size * MOST_FOR_SMALL : size / 2 * MOST_LARGER;
    unsigned char *count = larger_count(device, size);
    const unsigned char counted = load_relaxed(count);
    if (most <= least || counted == PATIENCE)
        return NULL;
    struct block_pool *const own = stream && !shared ? load_acquire(&stream->pool) : NULL;
    struct block *block = own ? take_larger(own, least, most, stream) : NULL;
    if (!block)
        block = take_larger(shared ? &shared_pools[device] : &device_pools[device], least, most,
                            shared ? NULL : stream);
    struct block_pool *pool = shared ? NULL : load_acquire(&stream_pools);
    for (int looked = 0; looked < POOLS_PER_SEARCH && pool && !block; looked++, pool = pool->next)
        if (pool != own && PROOF(larger_block_is_of_the_device, pool->device == device))
            block = take_larger(pool, least, most, stream);
    if (block)
        store_relaxed(count, (unsigned char)(counted + 1));
    return block;
}

void block_expect_own(size_t size, int device) {
    store_relaxed(larger_count(device, block_class(size)), 0);
}
