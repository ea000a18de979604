#include "shadow.h"
#include "../device.h"
#include "hooks.h"
#include "past.h"
#include "race.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* A freed block stays in the map until the program has freed MOST_FREED further blocks. */
enum { MOST_FREED = 4096, PAGE = 4096 };

static struct {
    pthread_rwlock_t lock;
    struct softgpu_block **blocks; /* sorted by address, without overlaps */
    size_t count, capacity;
    struct softgpu_block *freed[MOST_FREED]; /* a ring */
    size_t freed_count;
    unsigned made, registered;
    uint64_t generation;
} map = {.lock = PTHREAD_RWLOCK_INITIALIZER};

uint64_t softgpu_shadow_generation(void) {
    return __atomic_load_n(&map.generation, __ATOMIC_ACQUIRE);
}

uint64_t softgpu_check_guard(uint64_t size) {
    enum { LEAST = 1 << 20 };
    return size > LEAST ? (size + PAGE - 1) & ~(uint64_t)(PAGE - 1) : LEAST;
}

void softgpu_check_unmap(void *pages, uint64_t size) {
    enum { FLAGS = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED };
    (void)mmap(pages, size, PROT_NONE, FLAGS, -1, 0);
}

/* ---- the array ---- */

/* Returns the number of blocks that begin at or below an address. */
static size_t rank(uint64_t va) {
    size_t low = 0, high = map.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (map.blocks[middle]->va <= va)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static uint64_t end_of(const struct softgpu_block *block) {
    return block->va + block->size;
}

static void discard(struct softgpu_block *block) {
    softgpu_cells_end(block->cells);
    softgpu_bits_end(block->bits, block->size);
    free(block->past);
    free(block);
}

static void remove_at(size_t at) {
    struct softgpu_block *block = map.blocks[at];
    for (size_t n = 0; n < MOST_FREED; n++)
        if (map.freed[n] == block)
            map.freed[n] = NULL;
    map.count--;
    memmove(&map.blocks[at], &map.blocks[at + 1], (map.count - at) * sizeof *map.blocks);
    discard(block);
}

/* Removes earlier blocks that overlap [va, va + size). HIP or the program has already freed these
 * blocks. */
static void clear(uint64_t va, uint64_t size) {
    size_t at = rank(va);
    if (at && end_of(map.blocks[at - 1]) > va)
        at--;
    while (at < map.count && map.blocks[at]->va < va + size)
        remove_at(at);
}

static bool insert(struct softgpu_block *block) {
    if (map.count == map.capacity) {
        size_t wanted = map.capacity ? 2 * map.capacity : 64;
        struct softgpu_block **grown = realloc(map.blocks, wanted * sizeof(*grown));
        if (!grown)
            return false;
        map.blocks = grown;
        map.capacity = wanted;
    }
    size_t at = rank(block->va);
    memmove(&map.blocks[at + 1], &map.blocks[at], (map.count - at) * sizeof *map.blocks);
    map.blocks[at] = block;
    map.count++;
    return true;
}

static void changed(void) {
    __atomic_add_fetch(&map.generation, 1, __ATOMIC_RELEASE);
}

/* ---- changes ---- */

void softgpu_shadow_add(uint64_t va, uint64_t size, enum softgpu_block_kind kind,
                        const struct softgpu_place *place, uint32_t op) {
    struct softgpu_block *block = calloc(1, sizeof *block);
    if (!block)
        return; /* the map then lacks the block */
    block->va = va;
    block->size = size;
    block->registered = kind == MEMORY_REGISTERED;
    block->shared = kind == MEMORY_SHARED;
    block->op = op;
    block->cells = softgpu_cells_begin(va, size);
    block->past = softgpu_past_make();
    block->bits = kind == MEMORY_DEVICE ? softgpu_bits_begin(size) : NULL;
    if (place)
        block->made = *place;
    pthread_rwlock_wrlock(&map.lock);
    block->number = block->registered ? ++map.registered : ++map.made;
    clear(va, size);
    if (!insert(block))
        discard(block);
    changed();
    pthread_rwlock_unlock(&map.lock);
}

static void note_freed(struct softgpu_block *block) {
    struct softgpu_block **slot = &map.freed[map.freed_count++ % MOST_FREED];
    if (*slot)
        remove_at(rank((*slot)->va) - 1);
    *slot = block;
}

static struct softgpu_block *block_at(uint64_t va) {
    size_t at = rank(va);
    struct softgpu_block *block = at ? map.blocks[at - 1] : NULL;
    return block && va < end_of(block) ? block : NULL;
}

bool softgpu_shadow_holds(uint64_t va, struct softgpu_block *copy) {
    pthread_rwlock_rdlock(&map.lock);
    const struct softgpu_block *block = block_at(va);
    if (block)
        *copy = *block;
    pthread_rwlock_unlock(&map.lock);
    return block != NULL;
}

enum softgpu_end softgpu_shadow_judge(uint64_t va, struct softgpu_block *copy) {
    if (!softgpu_shadow_holds(va, copy))
        return SOFTGPU_NO_BLOCK;
    if (copy->va != va)
        return SOFTGPU_NOT_ITS_BEGIN;
    return copy->freed ? SOFTGPU_ENDED_BEFORE : SOFTGPU_LIVE;
}

void softgpu_shadow_end(uint64_t va, const struct softgpu_place *place) {
    pthread_rwlock_wrlock(&map.lock);
    struct softgpu_block *block = block_at(va);
    if (block && block->va == va && !block->freed) {
        block->freed = true;
        softgpu_cells_clear(block->cells);
        if (place)
            block->ended = *place;
        note_freed(block);
        changed();
    }
    pthread_rwlock_unlock(&map.lock);
}

/* ---- questions ---- */

static struct softgpu_finding allow(uint64_t low, uint64_t high) {
    return (struct softgpu_finding){.low = low, .high = high};
}

static struct softgpu_finding outside(const struct softgpu_block *block) {
    return (struct softgpu_finding){.verdict = block->freed ? SOFTGPU_FREED : SOFTGPU_OUTSIDE,
                                    .block = *block,
                                    .has_block = true};
}

static bool is_within(const struct softgpu_block *block, const struct softgpu_range *range) {
    return block && block->va >= range->va && block->va - range->va < range->size;
}

/* Returns whether a mapping was made for only this block. ROCr rounds sizes up to a multiple of the
 * page size or of 2 MiB, so the mapping may be larger than the block. */
static bool is_own(const struct softgpu_block *block, const struct softgpu_range *range) {
    enum { HUGE_PAGE = 2 << 20 };
    uint64_t end = end_of(block) - range->va, page = end < HUGE_PAGE ? PAGE : HUGE_PAGE;
    return block->va - range->va < PAGE && (end + page - 1) / page * page >= range->size;
}

static struct softgpu_finding find_mapped(uint64_t va, uint64_t bytes,
                                          const struct softgpu_block *below,
                                          const struct softgpu_block *above,
                                          const struct softgpu_range *range) {
    bool after = is_within(below, range), before = is_within(above, range);
    if (after && is_own(below, range))
        return outside(below);
    if (before && is_own(above, range))
        return outside(above);
    return after || before ? allow(va, va + bytes) : allow(range->va, range->va + range->size);
}

/* Returns how far behind a block an address still counts as the block's. Registered memory has no
 * guard, so an address far behind it may be meant for other memory. */
static uint64_t reach(const struct softgpu_block *block) {
    if (!block->registered)
        return softgpu_check_guard(block->size);
    return block->size > PAGE ? block->size : PAGE;
}

/* Returns the verdict on an access to an unmapped address. The address may lie in the guard behind
 * the lower block, or just below the upper block. The verdict concerns the nearer block. */
static struct softgpu_finding find_unmapped(uint64_t va, const struct softgpu_block *below,
                                            const struct softgpu_block *above) {
    uint64_t behind = below ? va - end_of(below) : UINT64_MAX;
    uint64_t before = above ? above->va - va : UINT64_MAX;
    bool in_guard = below && behind < reach(below);
    if (above && (before <= PAGE || in_guard) && before < behind)
        return outside(above);
    return in_guard ? outside(below) : (struct softgpu_finding){.verdict = SOFTGPU_UNMAPPED};
}

static struct softgpu_finding find(uint64_t va, uint64_t bytes) {
    size_t at = rank(va);
    const struct softgpu_block *below = at ? map.blocks[at - 1] : NULL;
    const struct softgpu_block *above = at < map.count ? map.blocks[at] : NULL;
    struct softgpu_range range;
    if (below && va < end_of(below)) {
        bool fits = bytes <= end_of(below) - va;
        if (!fits || below->freed)
            return outside(below);
        struct softgpu_finding inside = allow(below->va, end_of(below));
        inside.cells = below->cells;
        inside.past = below->past;
        inside.op = below->op;
        inside.bits = below->bits;
        inside.registered = below->registered;
        inside.shared = below->shared;
        return inside;
    }
    if (above && above->va - va < bytes)
        return outside(above);
    if (softgpu_find_range(va, &range) && bytes <= range.size - (va - range.va))
        return find_mapped(va, bytes, below, above, &range);
    return find_unmapped(va, below, above);
}

struct softgpu_finding softgpu_shadow_find(uint64_t va, uint64_t bytes) {
    pthread_rwlock_rdlock(&map.lock);
    struct softgpu_finding finding = find(va, bytes);
    pthread_rwlock_unlock(&map.lock);
    return finding;
}
