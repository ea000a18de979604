#include "memory/miss_reason.h"
#include "shared/types.h"
#include "telemetry/counters.h"

/* The search looks at the newest blocks only, so a miss does not take longer with more blocks. */
enum { LOOKED_AT = 256 };

/* Returns the counter for an allocation of which no block of this size waits. HIP has freed a block
 * of this size if the block left the cache because of the limit, or because memory was short. */
static uint64_t *reason_of(const struct block *block, size_t size, int device) {
    bool is_other_size_idle = false;
    for (int looked = 0; block && looked < LOOKED_AT; block = handle_next(block), looked++) {
        const int state = load_acquire(&block->state);
        const bool is_of_the_size = load_relaxed(&block->size) == size;
        if (load_relaxed(&block->device) != device)
            continue;
        if (state == BLOCK_GONE && is_of_the_size)
            return &counts.made.limit;
        is_other_size_idle |= state == BLOCK_IDLE && !is_of_the_size;
    }
    return is_other_size_idle ? &counts.made.size : &counts.made.first_use;
}

void block_tell_miss(const struct block *newest, size_t size, int device, bool waits) {
    if (stats_wanted())
        fetch_add_relaxed(waits ? &counts.made.waits : reason_of(newest, size, device), 1);
}
