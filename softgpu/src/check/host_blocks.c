/* Records the blocks that a checked program gets from malloc. `mgpu-rt check` preloads this library
 * of its own, because malloc can only be replaced when a program starts. Each function calls the
 * function that it replaces, which may belong to another allocator. */
#include "host_blocks.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define EXPORT __attribute__((visibility("default")))

/* ---- the table: open addressing, with memory of its own ---- */

enum { FIRST_ROOM = 1 << 12 };

/* A fork of the program takes the lock, and other libraries' handlers of forks may allocate. */
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static struct {
    struct softgpu_host_block *blocks; /* `begin` is 0 in a free slot */
    size_t room, count;                /* the room is a power of two */
    bool is_full;                      /* there was no memory, so blocks may be missing */
} table;

static size_t home_of(uint64_t begin) {
    return (begin * 0x9E3779B97F4A7C15u >> 20) & (table.room - 1);
}

/* Returns the slot of a block, or the free slot where the block belongs. */
static size_t slot_of(uint64_t begin) {
    size_t at = home_of(begin);
    while (table.blocks[at].begin && table.blocks[at].begin != begin)
        at = (at + 1) & (table.room - 1);
    return at;
}

static bool grow(void) {
    const size_t before = table.room, room = before ? 2 * before : FIRST_ROOM;
    struct softgpu_host_block *old = table.blocks;
    void *blocks =
        mmap(NULL, room * sizeof *old, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (blocks == MAP_FAILED)
        return false;
    table.blocks = blocks;
    table.room = room;
    for (size_t n = 0; n < before; n++)
        if (old[n].begin)
            table.blocks[slot_of(old[n].begin)] = old[n];
    if (old)
        munmap(old, before * sizeof *old);
    return true;
}

static void insert(void *memory, size_t size) {
    if (!memory)
        return;
    pthread_mutex_lock(&lock);
    if (2 * table.count >= table.room && !grow())
        table.is_full = true;
    if (!table.is_full) {
        const size_t at = slot_of((uintptr_t)memory);
        table.count += !table.blocks[at].begin;
        table.blocks[at] = (struct softgpu_host_block){(uintptr_t)memory, size};
    }
    pthread_mutex_unlock(&lock);
}

/* Closes the gap that the slot leaves: later blocks move back if their homes are not behind it. */
static void clear(size_t at) {
    const size_t last = table.room - 1;
    for (size_t next = (at + 1) & last; table.blocks[next].begin; next = (next + 1) & last) {
        const size_t home = home_of(table.blocks[next].begin);
        if (((next - home) & last) < ((next - at) & last))
            continue;
        table.blocks[at] = table.blocks[next];
        at = next;
    }
    table.blocks[at] = (struct softgpu_host_block){0, 0};
    table.count--;
}

/* Runs before the memory is freed: another thread may get the address right after. */
static void forget(void *memory) {
    pthread_mutex_lock(&lock);
    if (memory && table.room) {
        const size_t at = slot_of((uintptr_t)memory);
        if (table.blocks[at].begin)
            clear(at);
    }
    pthread_mutex_unlock(&lock);
}

EXPORT bool softgpu_find_host_block(uint64_t address, struct softgpu_host_block *found) {
    *found = (struct softgpu_host_block){0, 0};
    pthread_mutex_lock(&lock);
    if (table.room && !table.is_full) {
        *found = table.blocks[slot_of(address)];
        for (size_t n = 0; n < table.room && !found->begin; n++)
            if (address - table.blocks[n].begin < table.blocks[n].size)
                *found = table.blocks[n];
    }
    pthread_mutex_unlock(&lock);
    return found->begin != 0;
}

/* ---- forks ---- */

static void before_fork(void) {
    pthread_mutex_lock(&lock);
}

static void after_fork(void) {
    pthread_mutex_unlock(&lock);
}

static void in_child(void) {
    lock = (pthread_mutex_t)PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
}

__attribute__((constructor)) static void watch_forks(void) {
    pthread_atfork(before_fork, after_fork, in_child);
}

/* ---- the functions that are replaced ---- */

static struct {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void (*free)(void *);
    void *(*memalign)(size_t, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    int (*posix_memalign)(void **, size_t, size_t);
    void *(*valloc)(size_t);
    void *(*pvalloc)(size_t);
} next;

/* The malloc behind this library's. The runtime looks here for the allocator in use, because libc's
 * allows more than others do (csrc/runtime/driver/symbols.c). */
EXPORT void *mgpu_rt_recorded_malloc;

/* Memory that dlsym allocates while it looks for malloc. It is never freed. */
static _Alignas(max_align_t) char early[4096];
static size_t early_used;

static void *early_alloc(size_t size) {
    const size_t begin = early_used, align = sizeof(max_align_t);
    if (size > sizeof early - begin)
        return NULL;
    early_used += (size + align - 1) / align * align;
    return early + begin;
}

static bool is_early(const void *memory) {
    return (uintptr_t)memory - (uintptr_t)early < sizeof early;
}

/* Returns false while this function itself looks the others up. A program has one thread at its
 * first allocation, which the loader makes. */
static bool ready(void) {
    static bool is_looking;
    if (next.free)
        return true;
    if (is_looking)
        return false;
    is_looking = true;
#define FIND(name) *(void **)&next.name = dlsym(RTLD_NEXT, #name)
    FIND(malloc);
    FIND(calloc);
    FIND(realloc);
    FIND(memalign);
    FIND(aligned_alloc);
    FIND(posix_memalign);
    FIND(valloc);
    FIND(pvalloc);
    FIND(free);
#undef FIND
    mgpu_rt_recorded_malloc = *(void **)&next.malloc;
    return true;
}

EXPORT void *malloc(size_t size) {
    if (!ready())
        return early_alloc(size);
    void *memory = next.malloc(size);
    insert(memory, size);
    return memory;
}

EXPORT void *calloc(size_t count, size_t size) {
    if (!ready())
        return early_alloc(count * size);
    void *memory = next.calloc(count, size);
    insert(memory, count * size);
    return memory;
}

EXPORT void free(void *memory) {
    if (is_early(memory) || !ready())
        return;
    forget(memory);
    next.free(memory);
}

static void *move_early(const void *memory, size_t size) {
    const size_t room = sizeof early - (size_t)((const char *)memory - early);
    void *moved = malloc(size);
    return moved ? memcpy(moved, memory, size < room ? size : room) : NULL;
}

EXPORT void *realloc(void *memory, size_t size) {
    struct softgpu_host_block before;
    if (!memory || is_early(memory))
        return memory ? move_early(memory, size) : malloc(size);
    const bool is_known = softgpu_find_host_block((uintptr_t)memory, &before);
    forget(memory);
    void *moved = next.realloc(memory, size);
    if (moved)
        insert(moved, size);
    else if (size && is_known)
        insert(memory, before.size); /* it stays allocated */
    return moved;
}

#define ALIGNED(name)                                                                              \
    EXPORT void *name(size_t alignment, size_t size) {                                             \
        void *memory = ready() ? next.name(alignment, size) : NULL;                                \
        insert(memory, size);                                                                      \
        return memory;                                                                             \
    }
ALIGNED(memalign)
ALIGNED(aligned_alloc)

EXPORT int posix_memalign(void **memory, size_t alignment, size_t size) {
    const int error = ready() ? next.posix_memalign(memory, alignment, size) : ENOMEM;
    if (!error)
        insert(*memory, size);
    return error;
}

#define OF_PAGES(name)                                                                             \
    EXPORT void *name(size_t size) {                                                               \
        void *memory = ready() ? next.name(size) : NULL;                                           \
        insert(memory, size);                                                                      \
        return memory;                                                                             \
    }
OF_PAGES(valloc)
OF_PAGES(pvalloc)
