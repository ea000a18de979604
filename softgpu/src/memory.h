/* The device's address space: its mappings. This header is internal to memory.c and
 * address_space.c.
 *
 * All devices share one address space, as the GPUs of one process do. */
#ifndef SOFTGPU_MEMORY_H
#define SOFTGPU_MEMORY_H

#include "thunk.h"

enum { SOFTGPU_PAGE = 4096 };

/* A piece of the address space. [va, va + size) of the GPU, whole pages, is [host, host + size) of
 * the process. For memory that the driver allocated the two are equal, as ROCr demands. */
struct softgpu_mapping {
    uint64_t va, size;
    char *host;
    /* The address and size that the program registered, to the byte; only for its own memory. NULL
     * otherwise. The range's va is a reservation that the host cannot read, as with a real GPU. */
    char *user;
    uint64_t user_size;
    unsigned registrations; /* how often this user range is registered */
    bool scratch;           /* scratch has address space only */
    uint32_t node;          /* the node that the memory is on */
    HsaMemFlags flags;
    void *user_data;
    uint32_t node_count; /* number of devices that the range is mapped to */
    HSAuint32 nodes[SOFTGPU_MAX_NODES];
};

/* Serialises all changes; lookups share it. Finding, adding and removing need the lock. */
void softgpu_address_space_lock(bool exclusive);
void softgpu_address_space_unlock(void);

/* Returns the mapping that holds a GPU address, or NULL. */
struct softgpu_mapping *softgpu_mapping_at(uint64_t va);
/* Returns the mapping that holds a GPU address, or the registered range that starts there or, if
 * none does, one that holds the pointer. */
struct softgpu_mapping *softgpu_mapping_around(const void *pointer);
/* Returns the registered range that starts there and has this size; 0: the only one that starts
 * there. Several may start there: HIP unpins memory late, when the program has freed it and pinned
 * it again. Returns NULL if there is none, or more than one, as the real driver's library does. */
struct softgpu_mapping *softgpu_mapping_of_user_range(const void *start, uint64_t size);
/* Returns whether any registered range starts there. */
bool softgpu_user_range_begins(const void *start);
/* Returns the mapping that holds a GPU address, or else a registered range that starts there. */
struct softgpu_mapping *softgpu_mapping_of(const void *pointer, uint64_t size);
/* Adds a mapping; returns false if there is no memory for its entry. The address space then owns
 * the mapping. */
bool softgpu_mapping_add(struct softgpu_mapping *mapping);
/* Removes a mapping. */
void softgpu_mapping_remove(struct softgpu_mapping *mapping);

#endif
