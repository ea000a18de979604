/* Declares the mappings of the device's address space. This header is internal to memory.c and
 * address_space.c.
 *
 * All devices share one address space, as all GPUs of a process do. */
#ifndef SOFTGPU_MEMORY_H
#define SOFTGPU_MEMORY_H

#include "thunk.h"

enum { SOFTGPU_PAGE = 4096 };

/* A mapping in the device's address space. The GPU's range [va, va + size), in whole pages, is
 * [host, host + size) of the process. If the driver allocated the memory, va equals host, as ROCr
 * requires. */
struct softgpu_mapping {
    uint64_t va, size;
    char *host;
    /* The exact address that the program registered; NULL if the driver allocated the memory. For
     * registered memory, va is a reservation that the host cannot read, as with a real GPU. */
    char *user;
    uint64_t user_size;
    unsigned registrations; /* number of times that this user range is registered */
    bool scratch;           /* scratch consists of addresses without memory */
    uint32_t node;          /* the node that owns the memory */
    HsaMemFlags flags;
    void *user_data;
    uint32_t node_count; /* number of devices for which the range is mapped */
    HSAuint32 nodes[SOFTGPU_MAX_NODES];
};

/* Serialises all changes of the address space; lookups use the lock in shared mode. The caller must
 * own the lock to find, add or remove mappings. */
void softgpu_address_space_lock(bool exclusive);
void softgpu_address_space_unlock(void);

/* Returns the mapping that contains a GPU address, or NULL. */
struct softgpu_mapping *softgpu_mapping_at(uint64_t va);
/* Returns the mapping that contains a GPU address. If no mapping contains the address, returns the
 * registered range that starts at the pointer, or else a range that contains the pointer. */
struct softgpu_mapping *softgpu_mapping_around(const void *pointer);
/* Returns the registered range with this start and size; size 0 means the only range with this
 * start. Several ranges can have the same start, because HIP unpins memory late. The program may
 * already have freed this memory, and pinned new memory at the same address. Returns NULL if no
 * range matches or several ranges match, as the real driver's library does. */
struct softgpu_mapping *softgpu_mapping_of_user_range(const void *start, uint64_t size);
/* Returns whether any registered range starts at this address. */
bool softgpu_user_range_begins(const void *start);
/* Returns the mapping that contains a GPU address, or else a registered range that starts at the
 * pointer. */
struct softgpu_mapping *softgpu_mapping_of(const void *pointer, uint64_t size);
/* Adds a mapping; returns false if memory for the table is exhausted. After success the address
 * space owns the mapping. */
bool softgpu_mapping_add(struct softgpu_mapping *mapping);
/* Removes a mapping. */
void softgpu_mapping_remove(struct softgpu_mapping *mapping);

#endif
