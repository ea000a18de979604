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

/* ---- the table: a treap, whose nodes have memory of their own ----
 *
 * The tree is ordered by addresses, so a pointer inside a block finds it in as many steps as the
 * tree is high. A hash of its address says how high a node stands, which keeps the tree balanced.
 */

enum { FIRST_ROOM = 1 << 12 };

struct node {
    struct softgpu_host_block block;
    uint32_t lower, higher; /* nodes; 0: none */
};

/* A fork of the program takes the lock, and other libraries' handlers of forks may allocate. */
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static struct {
    struct node *nodes;              /* node 0 is none */
    uint32_t root, free, used, room; /* free nodes are a list by `lower` */
    bool is_full;                    /* there was no memory, so blocks may be missing */
} table;

/* No two addresses have equal heights, because each step can be undone. */
static uint64_t height_of(uint64_t begin) {
    begin *= 0x9E3779B97F4A7C15u;
    begin ^= begin >> 32;
    return begin * 0xD6E8FEB86659FD93u;
}

/* Returns the link to the node of a block, or else the link where the block's node belongs. */
static uint32_t *link_of(uint64_t begin) {
    uint32_t *link = &table.root;
    while (*link && height_of(table.nodes[*link].block.begin) > height_of(begin)) {
        struct node *const node = &table.nodes[*link];
        link = begin < node->block.begin ? &node->lower : &node->higher;
    }
    return link;
}

static bool is_at(uint32_t node, uint64_t begin) {
    return node && table.nodes[node].block.begin == begin;
}

/* Returns a new node, or 0 if there is no memory. The nodes may move. */
static uint32_t make_node(void) {
    const uint32_t made = table.free;
    if (made) {
        table.free = table.nodes[made].lower;
        return made;
    }
    if (table.used + 1 >= table.room) {
        const uint32_t room = table.room ? 2 * table.room : FIRST_ROOM;
        const size_t size = sizeof *table.nodes;
        void *nodes = table.room
                          ? mremap(table.nodes, table.room * size, room * size, MREMAP_MAYMOVE)
                          : mmap(NULL, room * size, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (nodes == MAP_FAILED)
            return 0;
        table.nodes = nodes;
        table.room = room;
    }
    return ++table.used;
}

/* Splits a tree into the nodes below an address and those above it. */
static void split(uint32_t tree, uint64_t begin, uint32_t *below, uint32_t *above) {
    while (tree) {
        struct node *const node = &table.nodes[tree];
        if (node->block.begin < begin) {
            *below = tree;
            below = &node->higher;
            tree = *below;
        } else {
            *above = tree;
            above = &node->lower;
            tree = *above;
        }
    }
    *below = *above = 0;
}

/* Joins two trees, of which one lies below the other. */
static void join(uint32_t *link, uint32_t below, uint32_t above) {
    while (below && above) {
        struct node *const low = &table.nodes[below], *const high = &table.nodes[above];
        if (height_of(low->block.begin) > height_of(high->block.begin)) {
            *link = below;
            link = &low->higher;
            below = *link;
        } else {
            *link = above;
            link = &high->lower;
            above = *link;
        }
    }
    *link = below ? below : above;
}

static void insert(void *memory, size_t size) {
    const uint64_t begin = (uintptr_t)memory;
    if (!memory)
        return;
    pthread_mutex_lock(&lock);
    if (is_at(*link_of(begin), begin)) {
        table.nodes[*link_of(begin)].block.size = size;
    } else {
        const uint32_t made = make_node();
        if (made) {
            uint32_t *const link = link_of(begin);
            struct node *const node = &table.nodes[made];
            node->block = (struct softgpu_host_block){begin, size};
            split(*link, begin, &node->lower, &node->higher);
            *link = made;
        } else {
            table.is_full = true;
        }
    }
    pthread_mutex_unlock(&lock);
}

/* Runs before the memory is freed: another thread may get the address right after. */
static void forget(void *memory) {
    pthread_mutex_lock(&lock);
    uint32_t *const link = link_of((uintptr_t)memory);
    const uint32_t gone = *link;
    if (is_at(gone, (uintptr_t)memory)) {
        struct node *const node = &table.nodes[gone];
        join(link, node->lower, node->higher);
        node->lower = table.free;
        table.free = gone;
    }
    pthread_mutex_unlock(&lock);
}

EXPORT bool softgpu_find_host_block(uint64_t address, struct softgpu_host_block *found) {
    *found = (struct softgpu_host_block){0, 0};
    pthread_mutex_lock(&lock);
    for (uint32_t n = table.is_full ? 0 : table.root; n;) {
        const struct node *const node = &table.nodes[n];
        if (node->block.begin <= address)
            *found = node->block;
        n = node->block.begin <= address ? node->higher : node->lower;
    }
    pthread_mutex_unlock(&lock);
    return found->begin && (found->begin == address || address - found->begin < found->size);
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
