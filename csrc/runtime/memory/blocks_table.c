#include "memory/blocks_table.h"
#include "atomics.h"
#include "check.h"
#include "driver/device.h"
#include "driver/hip.h"
#include "likely.h"
#include "mgpu.h"
#include "process/state.h"
#include "proof.h"
#include "shared/handles.h"
#include "shared/ranges.h"
#include "telemetry/observe.h"

static struct handle_map block_map = HANDLE_MAP(struct block);

struct block *block_find(const void *address) {
    return handle_find(&block_map, address);
}

/* ---- entering and leaving ---- */

/* By device, under tables_lock. */
static struct memory_account ledger[MOST_DEVICES];

/* Whether the account of a device is the sum of its blocks. Under tables_lock. */
CHECKS bool ledger_agrees(int device) {
    size_t bytes = 0, blocks = 0;
    for (const struct block *block = block_first(); block; block = handle_next(block))
        if (block->booked && block->device == device) {
            bytes += block->size;
            blocks++;
        }
    return bytes == ledger[device].reserved && blocks == ledger[device].blocks;
}

static void book(struct block *block, size_t size) {
    struct memory_account *account = &ledger[block->device];
    const size_t now = account->reserved + size;
    block->booked = true;
    store_relaxed(&account->reserved, now);
    if (now > account->peak_reserved)
        account->peak_reserved = now;
    account->blocks++;
    CHECK(ledger_agrees(block->device));
}

/* Under tables_lock. */
static void leave_table(struct block *block) {
    store_release(&block->state, BLOCK_GONE);
    if (!block->booked)
        return;
    struct memory_account *account = &ledger[block->device];
    PROOF_STEP(block_leaves_its_account_once, block->booked = false);
    store_relaxed(&account->reserved, account->reserved - block->size);
    account->blocks--;
    CHECK(ledger_agrees(block->device));
    ranges_remove((uintptr_t)block->handle.key);
}

/* HIP would not hand out memory of a block that it did not get back. So the program has freed it by
 * a call of its own. */
static void forget_past(const void *address, size_t size) {
    void *begin;
    while ((begin = ranges_begin(address, size))) {
        struct block *block = block_find(begin);
        if (!block || !block->booked) {
            ranges_remove((uintptr_t)begin); /* registered */
            continue;
        }
        if (block->state == BLOCK_IDLE)
            (void)block_unlink(block);
        leave_table(block);
    }
}

bool block_enter(void *address, size_t size, int device, int state) {
    const bool shared = state == BLOCK_SHARED;
    struct block *block = handle_insert(&block_map, address);
    if (!block)
        return false;
    pthread_mutex_lock(&tables_lock);
    forget_past(address, size);
    leave_table(block);
    fetch_add_relaxed(&block_clock, 1);
    store_relaxed(&block->size, size);
    store_relaxed(&block->device, device);
    block_note_use(block);
    block->shared = shared;
    block->number = 0;
    block_clear_fences(block);
    book(block, size);
    ranges_add(&block->range, (uintptr_t)address, size, shared ? RANGE_MANAGED : RANGE_DEVICE);
    store_release(&block->state, PROOF_VALUE(new_block_is_held, state, BLOCK_IDLE));
    pthread_mutex_unlock(&tables_lock);
    return true;
}

bool block_retire(struct block *block) {
    if (load_acquire(&block->state) != BLOCK_IDLE)
        return false;
    pthread_mutex_lock(&tables_lock);
    /* It may be on its way into a pool just now: then it is not found, and stays. */
    const bool owned = block_unlink(block);
    if (PROOF(block_leaves_its_pool_first, owned))
        leave_table(block);
    pthread_mutex_unlock(&tables_lock);
    return owned;
}

/* HIP may hand the address to another thread as soon as it has it: the block is unknown before. */
hipError_t block_free_by_hip(struct block *block, void *address) {
    const size_t size = block->size;
    const int device = block->device;
    pthread_mutex_lock(&tables_lock);
    leave_table(block);
    pthread_mutex_unlock(&tables_lock);
    const hipError_t error = hip.Free(address);
    observe(OBSERVED_BLOCK_FREED, block_address(block), size, device);
    return error;
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

static __attribute__((noinline)) bool confirm_shared(const struct block *block) {
    uint64_t number = 0;
    return device_memory_number(block_address(block), &number) && number != 0 &&
           number == block->number;
}

bool block_confirm(const struct block *block) {
    void *begin = NULL;
    size_t size = 0;
    if (UNLIKELY(block->shared))
        return PROOF(hip_has_the_shared_block, confirm_shared(block));
    return PROOF(hip_has_the_block,
                 hip.MemGetAddressRange(&begin, &size, block_address(block)) == hipSuccess &&
                     begin == block->handle.key && size >= block->size);
}

void block_note_number(struct block *block) {
    if (!device_memory_number(block_address(block), &block->number))
        block->number = 0;
}

/* Under tables_lock, and with HIP's word for it from before. */
static void forget_block(struct block *block) {
    if (DOUBT(forgotten_block_lies_elsewhere, block->shared) && block->state == BLOCK_IDLE)
        (void)block_unlink(block);
    leave_table(block);
}

static bool outlives_reset(const struct block *block) {
    return block->shared && block->state != BLOCK_GONE &&
           DOUBT(shared_block_outlives_the_reset, block_confirm(block));
}

/* HIP is not asked under the lock. A block that is entered meanwhile is of the time after the
 * reset. */
void block_forget_device(int device) {
    struct block *const newest = block_first();
    for (struct block *block = newest; block; block = handle_next(block))
        block->outlives =
            device != ALL_DEVICES && block_device(block) == device && outlives_reset(block);
    pthread_mutex_lock(&tables_lock);
    block_pools_empty(device);
    for (struct block *block = newest; block; block = handle_next(block))
        if (PROOF(reset_ends_its_own_blocks, of_device(device, block->device)) && !block->outlives)
            PROOF_STEP(reset_ends_blocks, forget_block(block));
    pthread_mutex_unlock(&tables_lock);
    ranges_change();
}

/* ---- accounts ---- */

size_t block_reserved(int device) {
    return load_relaxed(&ledger[device].reserved);
}

struct memory_account block_ledger(int device) {
    return ledger[device];
}

struct memory_account block_account(int device) {
    struct memory_account account = ledger[device];
    if (!account.peak_reserved)
        return account;
    account.blocks = 0;
    for (const struct block *block = block_first(); block; block = handle_next(block)) {
        const int state = load_acquire(&block->state);
        if (state == BLOCK_GONE || block_device(block) != device)
            continue;
        account.blocks++;
        if (block_held_by_program(block)) {
            account.live++;
            account.allocated += block_size(block);
        }
    }
    return account;
}
