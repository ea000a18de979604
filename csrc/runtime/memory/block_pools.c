/* Sets the fences of freed blocks, keeps idle blocks in pools, and finds the idle blocks. */
#include "memory/block_pools.h"
#include "streams/held.h"
#include "streams/joins.h"
#include "streams/streams_pool.h"

#include <stdlib.h>

/* A search of a list looks at LOOKED_AT blocks that are held, not ready or of another size. A
 * search asks HIP QUESTIONS questions. */
enum { LOOKED_AT = 32, QUESTIONS = 2, WAITING_MOST = 256 };

uint64_t block_clock = 1;

/* How many idle blocks of a device have several fences, of those that were freed since the library
 * last waited for the device. Changed under tables_lock. */
static struct {
    size_t blocks;
    uint64_t waits; /* the number of waits */
} waiting[MOST_DEVICES];

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
            store_release(&last->next, (struct fence *)calloc(1, sizeof(struct fence)));
        if (!last->next)
            return false;
        last = last->next;
        set_fence(last, other);
    }
    end_fences(last);
    if (UNLIKELY(idle > IDLE_LISTED_MOST))
        stream_sweep_list();
    return last == &block->fence ||
           !DOUBT(too_many_blocks_wait, load_relaxed(&waiting[device].blocks) >= WAITING_MOST);
}

bool block_set_fences(struct block *block, struct stream *stream, bool others) {
    set_fence(&block->fence, stream);
    return LIKELY(!others) || add_other_fences(block);
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

/* ---- the index ----
 *
 * Each device has a list of the blocks that the program has freed, and one for each size. A block
 * enters both lists at its first free. A hit changes no list, so the index also contains blocks
 * that the program holds again. A search removes such a block, and the block's next free inserts
 * the block again. So a search visits few blocks that are not idle: each visit is paid by an
 * earlier free. Changed under tables_lock. */
size_t block_pool_small_bytes[MOST_DEVICES];
static struct queue lists[MOST_DEVICES][2][INDEX_LISTS], device_lists[MOST_DEVICES];

/* Returns the number of the list of a size's class, below INDEX_LISTS. The list also contains the
 * blocks whose size is exact, because HIP had no memory for their class, or the limit no room. */
static size_t list_of_size(size_t size) {
    enum { SMALL = BLOCK_EXACT_UP_TO / BLOCK_GRAIN, LOG = 16 }; /* 2^16 is BLOCK_EXACT_UP_TO */
    if (size <= BLOCK_EXACT_UP_TO)
        return size / BLOCK_GRAIN;
    const int log = 63 - __builtin_clzll(size - 1);
    return SMALL + (size_t)(log - LOG) * 8 + ((size - 1) >> (log - 3)) % 8 + 1;
}

static struct queue *list_of(int device, bool shared, size_t list) {
    return &lists[PROOF_VALUE(block_is_of_the_device, device, 0)]
                 [PROOF_VALUE(shared_block_goes_to_shared_memory, shared, false)][list];
}

static size_t small_size(const struct block *block) {
    return block->size > BLOCK_EXACT_UP_TO ? 0 : block->size;
}

/* Makes a block the newest of its lists. Under tables_lock. */
static void enter_index(struct block *block) {
    struct queue *const list = list_of(block->device, block->shared, list_of_size(block->size));
    struct queue *const device_list = &device_lists[block->device];
    queue_add(list, &block->indexed, list->newest);
    queue_add(device_list, &block->on_device, device_list->newest);
    block_pool_small_bytes[block->device] += small_size(block);
}

void block_leave_index(struct block *block) {
    if (!block->indexed.queue)
        return;
    queue_remove(&block->indexed);
    queue_remove(&block->on_device);
    block_pool_small_bytes[block->device] -= small_size(block);
}

/* Removes a block that the program holds from the index. If the program frees the block just now,
 * the block stays. Under tables_lock. Inlined, this function would use up the growth that the
 * compiler allows itself. A launch that hits would then take 18 instructions more. */
static __attribute__((noinline)) void leave_index_if_held(struct block *block) {
    block_leave_index(block);
    fence_seq_cst();
    if (DOUBT(block_is_freed_just_now, load_seq_cst(&block->state) == BLOCK_IDLE))
        enter_index(block);
}

/* Returns the first idle block of a device's list, from `at` on; removes those before it that the
 * program holds. Under tables_lock. */
static struct block *first_idle(struct queued *at) {
    struct block *block;
    while ((block = QUEUE_ENTRY(at, struct block, on_device)) &&
           load_acquire(&block->state) != BLOCK_IDLE) {
        at = at->newer;
        leave_index_if_held(block);
    }
    return block;
}

static bool was_freed_before(const struct block *one, const struct block *other) {
    const uint64_t last = load_relaxed(&one->last_use), others = load_relaxed(&other->last_use);
    return last < others ||
           (last == others && load_relaxed(&one->uses) < load_relaxed(&other->uses));
}

/* The next search begins where this search ends. */
struct block *block_pool_oldest(int device) {
    struct block *oldest = first_idle(device_lists[device].oldest), *block = oldest;
    struct block *last = NULL;
    for (int looked = 0; block && looked < LOOKED_AT; looked++) {
        if (was_freed_before(block, oldest))
            oldest = block;
        last = block;
        block = first_idle(block->on_device.newer);
    }
    if (last)
        queue_rotate(&device_lists[device], &last->on_device);
    return oldest;
}

bool block_pool_may_be_idle(int device) {
    return load_relaxed(&device_lists[device].newest);
}

void block_pool_remove_held(int device) {
    enum { MOST = 1000 }; /* other threads wait for tables_lock */
    pthread_mutex_lock(&tables_lock);
    for (int removed = 0; removed < MOST; removed++) {
        struct block *block = QUEUE_ENTRY(device_lists[device].oldest, struct block, on_device);
        if (!block || load_acquire(&block->state) == BLOCK_IDLE)
            break;
        leave_index_if_held(block);
    }
    pthread_mutex_unlock(&tables_lock);
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
    struct block_pool *known = pool_on(stream, device); /* of an earlier stream of the handle */
    if (known)
        return cas_acq_rel_acquire(&stream->pool, &pool, known) ? known : pool;
    struct block_pool *fresh = calloc(1, sizeof(struct block_pool));
    if (!fresh)
        return NULL;
    fresh->device = device;
    if (!cas_acq_rel_acquire(&stream->pool, &pool, fresh)) {
        free(fresh);
        return pool;
    }
    pthread_mutex_lock(&tables_lock);
    fresh->next_of_owner = stream->pools;
    store_release(&stream->pools, fresh);
    pthread_mutex_unlock(&tables_lock);
    return fresh;
}

static inline bool put_into_way(struct block_pool *pool, struct block *block) {
    struct block **ways = pool->ways[block_set(block->size)];
    for (int way = 0; way < POOL_WAYS; way++) {
        struct block *empty = NULL;
        if (!load_relaxed(&ways[way]) && cas_acq_rel(&ways[way], &empty, block))
            return true;
    }
    return false;
}

static bool take_from_ways(struct block_pool *pool, struct block *block) {
    const size_t set = block_set(block->size);
    for (int way = 0; way < POOL_WAYS; way++) {
        struct block *expected = block;
        if (cas_acq_rel(&pool->ways[set][way], &expected, NULL))
            return true;
    }
    return false;
}

/* Makes a block that enters no pool loose. Under tables_lock. */
static void make_loose(struct block *block) {
    block->loose = true;
    if (!has_several_fences(block))
        return;
    block->waits = waiting[block->device].waits;
    store_relaxed(&waiting[block->device].blocks, waiting[block->device].blocks + 1);
}

/* Takes a loose block. Managed memory is in the index only while it is loose, so that a free need
 * not test the kind of memory. Under tables_lock. */
static void take_loose(struct block *block) {
    const size_t blocks = waiting[block->device].blocks;
    block->loose = false;
    if (has_several_fences(block) && block->waits == waiting[block->device].waits)
        store_relaxed(&waiting[block->device].blocks, blocks - 1);
    block_clear_fences(block);
    if (block->shared)
        block_leave_index(block);
}

/* Returns the list of a pool's blocks that found no empty way. */
static struct queue *list_in(struct block_pool *pool, size_t size) {
    return &pool->lists[block_set(size)];
}

/* Puts a block that is not in the index, has several fences, or finds no empty way. */
static __attribute__((noinline)) void put_slow(struct block *block) {
    struct stream *stream = block->fence.stream;
    struct block_pool *pool = NULL;
    struct queue *list = NULL;
    if (stream && !has_several_fences(block) && !block->shared) {
        pool = load_acquire(&stream->pool);
        if (!pool)
            pool = make_pool(stream, block->device);
    }
    pthread_mutex_lock(&tables_lock);
    if (!pool)
        make_loose(block);
    else if (!put_into_way(pool, block)) /* from here on another thread may take the block */
        list = list_in(pool, block->size);
    if (block->booked && !block->indexed.queue)
        PROOF_STEP(freed_block_is_indexed, enter_index(block));
    if (list)
        queue_add(list, &block->listed, list->newest);
    pthread_mutex_unlock(&tables_lock);
}

void block_pool_put(struct block *block) {
    struct stream *stream = block->fence.stream;
    store_relaxed(&block->last_use, load_relaxed(&block_clock));
    if (LIKELY(stream && !has_several_fences(block) && load_relaxed(&block->indexed.queue))) {
        struct block_pool *pool = load_acquire(&stream->pool);
        if (LIKELY(pool) && LIKELY(put_into_way(pool, block)))
            return;
    }
    put_slow(block);
}

bool block_unlink(struct block *block) {
    const struct stream *stream = load_relaxed(&block->fence.stream);
    if (!block->loose && !block->listed.queue) {
        struct block_pool *pool = stream ? load_acquire(&stream->pool) : NULL;
        if (UNLIKELY(stream && (!pool || pool->device != block->device)))
            pool = pool_on(stream, block->device);
        return pool && take_from_ways(pool, block);
    }
    if (block->loose)
        take_loose(block);
    else
        queue_remove(&block->listed);
    return true;
}

void block_device_is_idle(struct block *block) {
    block_clear_fences(block);
    pthread_mutex_lock(&tables_lock);
    waiting[block->device].waits++;
    store_relaxed(&waiting[block->device].blocks, 0);
    pthread_mutex_unlock(&tables_lock);
}

/* ---- searching ---- */

/* A block of `least` to `most` bytes for the next work of `stream`. */
struct wanted {
    size_t least, most;
    int device;
    bool shared;
    const struct stream *stream; /* NULL: any stream */
    struct stream *holder;       /* if such a block waits for a stream, that stream */
};

static bool suits(const struct block *block, struct wanted *wanted) {
    if (block->size < wanted->least || block->size > wanted->most)
        return false;
    if (block->shared)
        return PROOF(shared_block_is_idle, is_ready(block, NULL, &wanted->holder));
    return is_ready(block, wanted->stream, &wanted->holder);
}

/* Takes a wanted block of a list, which the next search meets first: by then the program holds the
 * block. If no block is ready, returns NULL, and the next search begins where this search ends.
 * Under tables_lock. */
static struct block *take_from_list(struct queue *list, struct wanted *wanted) {
    struct queued *at = list->newest;
    struct block *taken = NULL;
    for (int looked = 0; at && !taken && looked < LOOKED_AT; looked++) {
        struct block *const block = QUEUE_ENTRY(at, struct block, indexed);
        struct queued *const older = at->older;
        if (load_acquire(&block->state) != BLOCK_IDLE)
            leave_index_if_held(block);
        else if (suits(block, wanted) && block_unlink(block))
            taken = block;
        if (!taken || block->shared) /* a shared block has left the index */
            at = older;
    }
    if (at)
        queue_rotate(list, at);
    return taken;
}

/* Takes a wanted block of a list's sizes. Returns NULL if no block is ready. */
static struct block *take_indexed(size_t list, struct wanted *wanted) {
    struct queue *const first = list_of(wanted->device, wanted->shared, list);
    if (!load_relaxed(&first->newest))
        return NULL;
    pthread_mutex_lock(&tables_lock);
    struct block *block = take_from_list(first, wanted);
    pthread_mutex_unlock(&tables_lock);
    /* Without the lock, a hit may have taken the block and freed it again before it was taken here.
     */
    if (!block || LIKELY(is_ready(block, wanted->stream, &wanted->holder)))
        return block;
    block_pool_put(block);
    return NULL;
}

/* Asks HIP about a stream; returns true if HIP was asked. */
static bool query_holder(struct stream *holder) {
    bool asked = false;
    (void)(DOUBT(destroyed_stream_is_done, stream_query_unheld(holder, &asked)) ||
           DOUBT(held_stream_is_done, stream_query_held(holder, &asked)));
    return asked;
}

/* Takes a wanted block of a pool's list, which may begin with blocks of other sizes. The index then
 * finds the block. */
static struct block *take_own(struct block_pool *pool, const struct wanted *wanted) {
    const struct queue *const list = list_in(pool, wanted->most);
    struct block *block = NULL;
    if (!load_relaxed(&list->newest))
        return NULL;
    pthread_mutex_lock(&tables_lock);
    const struct queued *at = list->newest;
    for (int looked = 0; at && !block && looked < LOOKED_AT; looked++, at = at->older) {
        struct block *const each = QUEUE_ENTRY(at, struct block, listed);
        if (each->size == wanted->most)
            block = each;
    }
    if (block)
        queue_remove(&block->listed);
    pthread_mutex_unlock(&tables_lock);
    return block;
}

/* A block of the stream's own comes first, which needs no question. Otherwise, if no block is
 * ready, asks HIP about the stream that a block waits for, and tries again. If a block is ready
 * while another block waits, asks once, so that the other block is ready when the program needs it.
 */
struct block *block_search_pools(size_t bytes, int device, struct stream *stream, bool shared,
                                 bool *waits) {
    struct wanted wanted = {bytes, block_class(bytes), device, shared, stream, NULL};
    const size_t list = list_of_size(wanted.most);
    const struct stream *before = NULL;
    struct block_pool *own = stream && !shared ? load_acquire(&stream->pool) : NULL;
    struct block *block = own ? take_own(own, &wanted) : NULL;
    if (!block)
        block = take_indexed(list, &wanted);
    for (int questions = 0; wanted.holder && wanted.holder != before && questions < QUESTIONS;
         questions++) {
        before = wanted.holder;
        if (!query_holder(wanted.holder) || block)
            break;
        wanted.holder = NULL;
        block = take_indexed(list, &wanted);
    }
    *waits = wanted.holder != NULL;
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
    static unsigned char counts[MOST_DEVICES][INDEX_LISTS];
    return &counts[device][list_of_size(size)];
}

static size_t most_for(size_t size) {
    return size <= BLOCK_EXACT_UP_TO ? size * MOST_FOR_SMALL : size / 2 * MOST_LARGER;
}

struct block *block_search_larger(size_t size, size_t room, int device, struct stream *stream,
                                  bool shared) {
    const bool is_small = size <= BLOCK_EXACT_UP_TO;
    const size_t least =
        is_small ? PROOF_VALUE(larger_block_records_the_request, BLOCK_EXACT_UP_TO, size) : size;
    size_t most = most_for(size);
    unsigned char *count = larger_count(device, size);
    const unsigned char counted = load_relaxed(count);
    if (DOUBT(larger_blocks_take_the_room, most > size && most - size > room))
        most = size + room;
    if (most <= least || counted == PATIENCE)
        return NULL;
    struct wanted wanted = {least + 1, most, device, shared, stream, NULL};
    struct block *block = NULL;
    for (size_t list = list_of_size(least + 1); list <= list_of_size(most) && !block; list++)
        block = take_indexed(list, &wanted);
    if (block)
        store_relaxed(count, (unsigned char)(counted + 1));
    return block;
}

void block_expect_own(size_t size, int device) {
    store_relaxed(larger_count(device, block_class(size)), 0);
}

/* ---- blocks that have left ---- */

/* The lists of whose sizes HIP has freed a block. */
static bool gone[MOST_DEVICES][INDEX_LISTS];

void block_note_gone(const struct block *block) {
    store_relaxed(&gone[block->device][list_of_size(block->size)], true);
}

bool block_may_have_gone(size_t size, int device) {
    const size_t least = size <= BLOCK_EXACT_UP_TO ? BLOCK_EXACT_UP_TO : size;
    const size_t last = list_of_size(most_for(size));
    bool is_gone = load_relaxed(&gone[device][list_of_size(size)]);
    for (size_t list = list_of_size(least + 1); list <= last && list < INDEX_LISTS; list++)
        is_gone |= load_relaxed(&gone[device][list]);
    return is_gone;
}
