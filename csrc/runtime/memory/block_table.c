/* Keeps the table of all blocks and the accounts of the devices. */
#include "memory/block_table.h"
#include "driver/device.h"
#include "driver/witness.h"
#include "memory/block_pools.h"
#include "shared/caches.h"

/* Stands for the number that HIP has not told; HIP gives it to no allocation. */
#define NO_NUMBER UINT64_MAX

struct handle_map block_map = HANDLE_MAP(struct block);

struct block *block_find(const void *address) {
    return handle_find(&block_map, address);
}

struct block *block_first(void) {
    return handle_first(&block_map);
}

struct block *block_around(const void *address) {
    pthread_mutex_lock(&tables_lock);
    const void *begin = ranges_begin(address, 1);
    pthread_mutex_unlock(&tables_lock);
    struct block *block = begin ? block_find(begin) : NULL;
    return block && block->state != BLOCK_GONE ? block : NULL;
}

/* ---- bytes ---- */

size_t block_large_bytes[MOST_DEVICES];
bool blocks_have_slack;
static struct held_bytes held_apart[MOST_DEVICES]; /* what ended threads have counted */

static void count_apart(int device, ptrdiff_t size, ptrdiff_t asked) {
    fetch_add_relaxed(&held_apart[device].size, size);
    fetch_add_relaxed(&held_apart[device].asked, asked);
}

/* Changes how many bytes of large blocks the program holds on a device. Each thread has its own
 * count, so that threads share no cache line. */
static void count_held(int device, ptrdiff_t size, ptrdiff_t asked) {
    struct thread *thread = thread_self;
    if (UNLIKELY(!thread)) {
        count_apart(device, size, asked);
        return;
    }
    struct held_bytes *held = &thread->held[device];
    store_relaxed(&held->size, load_relaxed(&held->size) + size);
    store_relaxed(&held->asked, load_relaxed(&held->asked) + asked);
}

void block_ask_large(struct block *block, size_t bytes) {
    PROOF_STEP(slack_is_not_the_programs, range_use(&block->range, bytes));
    if (bytes != block->size && UNLIKELY(!load_relaxed(&blocks_have_slack)))
        store_relaxed(&blocks_have_slack, true);
    count_held(block->device, (ptrdiff_t)block->size, (ptrdiff_t)bytes);
}

void block_unask(const struct block *block) {
    if (block->size > BLOCK_EXACT_UP_TO)
        count_held(block->device, -(ptrdiff_t)block->size, -(ptrdiff_t)block_asked(block));
}

void block_thread_ends(struct thread *thread) {
    for (int device = 0; device < MOST_DEVICES; device++) {
        struct held_bytes *held = &thread->held[device];
        count_apart(device, load_relaxed(&held->size), load_relaxed(&held->asked));
        store_relaxed(&held->size, 0);
        store_relaxed(&held->asked, 0);
    }
}

/* Returns the sum over all threads. A sum may be wrong while a thread counts. Under tables_lock. */
static struct held_bytes held_by_all(int device) {
    struct held_bytes sum = {load_relaxed(&held_apart[device].size),
                             load_relaxed(&held_apart[device].asked)};
    for (const struct thread *thread = thread_list; thread; thread = thread->next) {
        sum.size += load_relaxed(&thread->held[device].size);
        sum.asked += load_relaxed(&thread->held[device].asked);
    }
    return sum;
}

size_t block_asked_bytes(int device) {
    const ptrdiff_t bytes = held_by_all(device).asked;
    return bytes > 0 ? (size_t)bytes : 0;
}

size_t block_beyond_bytes(int device) {
    const struct held_bytes held = held_by_all(device);
    return held.size > held.asked ? (size_t)(held.size - held.asked) : 0;
}

size_t block_large_unused(int device) {
    const size_t large = load_relaxed(&block_large_bytes[device]);
    const size_t asked = block_asked_bytes(device);
    return large > asked ? large - asked : 0;
}

/* Returns whether the account of a device agrees with the device's blocks in the table. Under
 * tables_lock. */
CHECKS bool account_agrees(int device) {
    size_t bytes = 0, blocks = 0;
    if (runtime_exiting())
        return true; /* it keeps the blocks that have left the tables */
    for (const struct block *block = block_first(); block; block = handle_next(block))
        if (block->booked && block->device == device) {
            bytes += block->size;
            blocks++;
        }
    return bytes == counts.memory[device].reserved && blocks == counts.memory[device].blocks;
}

/* Returns true if the program held the block when the process began to exit. */
static bool was_held_at_exit(const struct block *block) {
    return runtime_exiting() && load_acquire(&block->state) == BLOCK_GONE &&
           load_relaxed(&block->booked);
}

void block_count_held(struct memory_account accounts[MOST_DEVICES]) {
    for (int device = 0; device < MOST_DEVICES; device++)
        accounts[device].live = accounts[device].allocated = 0;
    for (const struct block *block = block_first(); block; block = handle_next(block))
        if (block_held_by_program(block) || was_held_at_exit(block)) {
            accounts[block_device(block)].live++;
            accounts[block_device(block)].allocated += block_asked(block);
        }
}

/* ---- entries ---- */

void block_remove(struct block *block) {
    const int state = exchange_acq_rel(&block->state, BLOCK_GONE);
    if (!block->booked)
        return;
    struct memory_account *account = &counts.memory[block->device];
    size_t *large = &block_large_bytes[block->device];
    PROOF_STEP(block_leaves_its_account_once, block->booked = false);
    if (state > BLOCK_IDLE)
        block_unask(block);
    store_relaxed(&account->reserved, account->reserved - block->size);
    store_relaxed(&account->blocks, account->blocks - 1);
    if (block->size > BLOCK_EXACT_UP_TO)
        store_relaxed(large, *large - block->size);
    block_note_gone(block);
    CHECK(account_agrees(block->device));
    block_leave_index(block);
    ranges_remove((uintptr_t)block->handle.key);
}

void block_remove_at_exit(struct block *block) {
    const int state = exchange_acq_rel(&block->state, BLOCK_GONE);
    if (!block->booked)
        return;
    store_relaxed(&block->booked, state >= BLOCK_LIVE);
    block_leave_index(block);
    ranges_remove((uintptr_t)block->handle.key);
}

bool block_free_late(struct block *block) {
    pthread_mutex_lock(&tables_lock);
    const bool was_held = was_held_at_exit(block);
    if (was_held)
        block_remove(block);
    pthread_mutex_unlock(&tables_lock);
    return was_held;
}

/* Removes the blocks that overlap a new allocation. HIP allocates the same memory again only after
 * a free, so the program has freed the overlapping blocks by calls to HIP. */
static void remove_overlapped(const void *address, size_t size) {
    void *begin;
    while ((begin = ranges_begin(address, size))) {
        struct block *block = block_find(begin);
        if (!block || !block->booked) {
            ranges_remove((uintptr_t)begin); /* registered */
            continue;
        }
        if (block->state == BLOCK_IDLE)
            (void)block_unlink(block);
        block_remove(block);
    }
}

struct block *block_insert(void *address, size_t size, size_t bytes, int device, int state) {
    const bool shared = state == BLOCK_SHARED;
    struct block *block = handle_insert(&block_map, address);
    struct memory_account *account = &counts.memory[device];
    size_t *large = &block_large_bytes[device];
    if (!block)
        return NULL;
    pthread_mutex_lock(&tables_lock);
    remove_overlapped(address, size);
    if (UNLIKELY(DOUBT(block_was_put_back_after_a_reset, block->listed.queue || block->loose)))
        (void)block_unlink(block);
    block_remove(block);
    fetch_add_relaxed(&block_clock, 1);
    store_relaxed(&block->size, size);
    store_relaxed(&block->device, device);
    store_relaxed(&block->uses, block->uses + 1);
    block->shared = shared;
    block->number = shared ? NO_NUMBER : 0;
    store_relaxed(&block->graph, 0);
    block_clear_fences(block);
    block->booked = true;
    store_relaxed(&account->blocks, account->blocks + 1);
    store_relaxed(&account->reserved, account->reserved + size);
    if (account->reserved > account->peak_reserved)
        store_relaxed(&account->peak_reserved, account->reserved);
    if (size > BLOCK_EXACT_UP_TO)
        store_relaxed(large, *large + size);
    CHECK(account_agrees(device));
    ranges_add(&block->range, (uintptr_t)address, size, shared ? RANGE_MANAGED : RANGE_DEVICE);
    block_ask(block, bytes);
    store_release(&block->state, PROOF_VALUE(new_block_is_held, state, BLOCK_IDLE));
    pthread_mutex_unlock(&tables_lock);
    return block;
}

/* ---- HIP ---- */

/* Inlined into block_free, this function would cost each hit two instructions. */
__attribute__((noinline)) hipError_t block_free_by_hip(struct block *block, void *address) {
    pthread_mutex_lock(&tables_lock);
    if (block)
        block_remove(block);
    else
        ranges_remove((uintptr_t)address);
    pthread_mutex_unlock(&tables_lock);
    return hip.Free(address);
}

void block_ask_number(struct block *block) {
    if ((block->shared || hip_device_count > 1) &&
        !device_memory_number(block_address(block), &block->number))
        block->number = NO_NUMBER;
}

/* Asks HIP whether the allocation that contains the block still exists. The program may have freed
 * the block by calling HIP, or have reset the device. HIP gives each allocation a number. NVIDIA's
 * driver does not report where managed memory begins. hipMemGetAddressRange does not report the
 * device, and HIP may put memory of another device at the address. */
static bool hip_has(const struct block *block) {
    void *begin = NULL;
    size_t size = 0;
    uint64_t number = 0;
    if (UNLIKELY(block->number))
        return PROOF(hip_has_the_numbered_block,
                     device_memory_number(block_address(block), &number) &&
                         number == block->number);
    return PROOF(hip_has_the_block,
                 hip.MemGetAddressRange(&begin, &size, block_address(block)) == hipSuccess &&
                     begin == block->handle.key && size >= block->size);
}

__attribute__((noinline)) bool block_is_still_there(const struct block *block) {
    return PROOF(nobody_has_freed_the_block, witness_confirms()) || hip_has(block);
}

/* Other code may have freed the block, and HIP may have allocated more bytes at its address. */
size_t block_past_slack(const void *address, size_t bytes) {
    const size_t past = ranges_past(address, bytes);
    if (LIKELY(past == bytes))
        return bytes;
    const struct block *const block = block_around(address);
    return block && block_is_still_there(block) ? past : bytes;
}
