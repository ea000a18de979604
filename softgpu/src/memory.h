/* The device's address space: what is mapped where. Internal to memory.c and address_space.c.
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
    /* Only for memory that the program owns and registered: what it named, to the byte. NULL
     * otherwise. Its va is a reservation that the host cannot read, as with a real GPU. */
    char *user;
    uint64_t user_size;
    unsigned registrations; /* of the same user range */
    bool scratch;           /* address space only */
    uint32_t node;          /* that the memory lives on */
    HsaMemFlags flags;
    void *user_data;
    uint32_t node_count; /* devices that it is mapped to */
    HSAuint32 nodes[SOFTGPU_MAX_NODES];
};

/* Serialises all changes; lookups share it. Finds, adds and removes want it held. */
void softgpu_address_space_lock(bool exclusive);
void softgpu_address_space_unlock(void);

/* Returns the mapping that holds a GPU address, or NULL. */
struct softgpu_mapping *softgpu_mapping_at(uint64_t va);
/* Returns the mapping that holds a GPU address, else the registered range that starts there or, if
 * none does, one that holds the pointer. */
struct softgpu_mapping *softgpu_mapping_around(const void *pointer);
/* Returns the registered range that starts there and has this size; 0: the only one that starts
 * there. Several may: HIP unpins memory late, when the program has had it back and pinned it again.
 * NULL if there is none, or if it could be several, as with the kernel driver's library. */
struct softgpu_mapping *softgpu_mapping_of_user_range(const void *start, uint64_t size);
/* Returns whether any registered range starts there. */
bool softgpu_user_range_begins(const void *start);
/* Returns the mapping that holds a GPU address, else a registered range that starts there. */
struct softgpu_mapping *softgpu_mapping_of(const void *pointer, uint64_t size);
/* Adds a mapping; false if there is no memory for the bookkeeping. Ownership passes to the address
 * space. */
bool softgpu_mapping_add(struct softgpu_mapping *mapping);
/* Removes a mapping. */
void softgpu_mapping_remove(struct softgpu_mapping *mapping);

#endif
