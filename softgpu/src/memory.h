/* Declares the mappings of the device's address space. This header is internal to memory.c and
 * address_space.c.
 *
 * All devices share one address space, as all GPUs of a process do. */
#ifndef SOFTGPU_MEMORY_H
#define SOFTGPU_MEMORY_H

#include "thunk.h"

enum { SOFTGPU_PAGE = 4096 };

/* A mapping in the device's address space. The GPU's addresses [va, va + size) correspond to [host,
 * host + size) in this process; the two ranges consist of whole pages. If the driver allocated the
 * memory, va equals host, as ROCr requires. */
struct softgpu_mapping {
    uint64_t va, size;
    char *host;
    /* The exact address that the program registered; NULL if the driver allocated the memory. For
     * registered memory, va is a reserved address, at which the host cannot read, as with a real
     * GPU. */
    char *user;
    uint64_t user_size;
    unsigned registrations; /* number of times that this user range is registered */
    bool scratch;           /* true for scratch, which has addresses but no memory */
    unsigned image;         /* the loaded image that softgpu_name_ranges gave; 0 without one */
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
/* Returns the registered range with this start and size. If `size` is 0, the range must be the only
 * range with this start. Several ranges can have the same start, because HIP unpins memory late.
 * The program may pin new memory at an address before HIP has unpinned the old memory. Returns NULL
 * if no range matches or several ranges match, as the real driver's library does. */
struct softgpu_mapping *softgpu_mapping_of_user_range(const void *start, uint64_t size);
/* Returns whether any registered range starts at this address. */
bool softgpu_user_range_begins(const void *start);
/* Returns the mapping that contains a GPU address, or else the registered range that
 * softgpu_mapping_of_user_range finds. */
struct softgpu_mapping *softgpu_mapping_of(const void *pointer, uint64_t size);
/* Adds a mapping; returns false if memory for the table is exhausted. After success the address
 * space owns the mapping. */
bool softgpu_mapping_add(struct softgpu_mapping *mapping);
/* Removes a mapping. */
void softgpu_mapping_remove(struct softgpu_mapping *mapping);

#endif
