/* Allocates memory within the devices' limits, registers the program's memory, and maps memory for
 * devices.
 *
 * Device memory is memory of this process; the host allocates each page at the first access. */
#include "memory.h"
#include "check/hooks.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    /* A reserve for ROCr's own memory, which HIP does not count as used. Without the reserve, HIP
     * would report more free memory than exists. */
    OWN_MEMORY = 4 << 20,
    HUGE_PAGE = 2 << 20,
};

static uint64_t used[SOFTGPU_MAX_NODES]; /* allocated bytes; guarded by the address space's lock */

static uint64_t round_up(uint64_t size) {
    return (size + SOFTGPU_PAGE - 1) & ~(uint64_t)(SOFTGPU_PAGE - 1);
}

/* Returns a reservation of `size` bytes with the requested alignment. */
static void *map_aligned(uint64_t size, uint64_t alignment, int protection) {
    enum { FLAGS = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE };
    uint64_t slack = alignment > SOFTGPU_PAGE ? alignment - SOFTGPU_PAGE : 0;
    if (size > UINT64_MAX - slack)
        return NULL;
    uint64_t guard = CHECK_GUARD(size);
    char *pages = mmap(NULL, size + guard + slack, protection, FLAGS, -1, 0);
    if (pages == MAP_FAILED)
        return NULL;
    uint64_t before = slack ? -(uintptr_t)pages & (alignment - 1) : 0;
    if (before)
        munmap(pages, before);
    if (slack - before)
        munmap(pages + before + size + guard, slack - before);
    if (guard)
        mprotect(pages + before + size, guard, PROT_NONE);
    return pages + before;
}

static void *map_fixed(void *fixed, uint64_t size, int protection) {
    enum { FLAGS = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE };
    void *pages = mmap(fixed, size, protection, FLAGS, -1, 0);
    if (pages == MAP_FAILED)
        return NULL;
    if (pages == fixed)
        return pages;
    munmap(pages, size); /* an old kernel ignores MAP_FIXED_NOREPLACE */
    return NULL;
}

/* The requested address: `fixed`, or any multiple of `alignment` if `fixed` is NULL. Alignment 0
 * means a page's alignment. */
struct place {
    void *fixed;
    uint64_t alignment;
};

/* Reserves addresses or allocates pages; returns NULL if the host refuses. */
static void *map_pages(struct place place, uint64_t size, int protection) {
    void *pages = place.fixed ? map_fixed(place.fixed, size, protection)
                              : map_aligned(size, place.alignment, protection);
    if (!pages)
        return NULL;
    /* Page faults for 4 KiB pages would cost more than the copy that causes the faults. */
    if (size >= HUGE_PAGE && protection != PROT_NONE)
        madvise(pages, size, MADV_HUGEPAGE);
    return pages;
}

/* Charges bytes to a node's memory; returns false if too few bytes are free. */
static bool charge(uint32_t node, uint64_t size) {
    softgpu_address_space_lock(true);
    bool fits = size <= softgpu_node_memory(node) + (node ? OWN_MEMORY : 0) - used[node];
    if (fits)
        used[node] += size;
    softgpu_address_space_unlock();
    return fits;
}

static void refund(uint32_t node, uint64_t size) {
    softgpu_address_space_lock(true);
    used[node] -= size;
    softgpu_address_space_unlock();
}

static bool add(struct softgpu_mapping *mapping) {
    softgpu_address_space_lock(true);
    bool added = softgpu_mapping_add(mapping);
    softgpu_address_space_unlock();
    return added;
}

/* Allocates memory whose bytes the caller has already charged to the node. */
static struct softgpu_mapping *allocate(uint32_t node, uint64_t size, HsaMemFlags flags,
                                        struct place place) {
    struct softgpu_mapping *mapping = calloc(1, sizeof *mapping);
    /* A scratch mapping only reserves addresses, because the interpreter allocates scratch memory
     * for each workgroup. */
    int protection = flags.ui32.Scratch ? PROT_NONE : PROT_READ | PROT_WRITE;
    void *pages = mapping ? map_pages(place, size, protection) : NULL;
    if (!pages) {
        free(mapping);
        return NULL;
    }
    mapping->va = (uintptr_t)pages;
    mapping->size = size;
    mapping->host = pages;
    mapping->scratch = flags.ui32.Scratch;
    mapping->node = node;
    mapping->flags = flags;
    if (!add(mapping)) {
        munmap(pages, size);
        free(mapping);
        return NULL;
    }
    return mapping;
}

/* Flags that ROCr 7 introduced for virtual memory management: memory without an address, and an
 * address without memory. This device has no virtual memory management. */
enum { NO_ADDRESS = 1 << 18, ONLY_ADDRESS = 1 << 19 };

SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtAllocMemoryAlign(HSAuint32 node, HSAuint64 size,
                                                    HSAuint64 alignment, HsaMemFlags flags,
                                                    void **memory);
HSAKMT_STATUS hsaKmtAllocMemoryAlign(HSAuint32 node, HSAuint64 size, HSAuint64 alignment,
                                     HsaMemFlags flags, void **memory) {
    SOFTGPU_REFUSE_AFTER_FORK();
    if (node > softgpu_device_count() || size == 0 || size > UINT64_MAX - SOFTGPU_PAGE ||
        (alignment & (alignment - 1)))
        return HSAKMT_STATUS_INVALID_PARAMETER;
    if (flags.Value & (NO_ADDRESS | ONLY_ADDRESS))
        return HSAKMT_STATUS_NOT_SUPPORTED;
    uint64_t rounded = round_up(size), charged = flags.ui32.Scratch ? 0 : rounded;
    if (!charge(node, charged))
        return HSAKMT_STATUS_NO_MEMORY;
    struct place place = {flags.ui32.FixedAddress ? *memory : NULL, alignment};
    struct softgpu_mapping *mapping = allocate(node, rounded, flags, place);
    if (!mapping) {
        refund(node, charged);
        return HSAKMT_STATUS_NO_MEMORY;
    }
    *memory = mapping->host;
    return HSAKMT_STATUS_SUCCESS;
}

SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtAllocMemory(HSAuint32 node, HSAuint64 size, HsaMemFlags flags,
                                               void **memory) {
    return hsaKmtAllocMemoryAlign(node, size, 0, flags, memory);
}

/* Returns a node's free memory. */
SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtAvailableMemory(HSAuint32 node, HSAuint64 *bytes);
HSAKMT_STATUS hsaKmtAvailableMemory(HSAuint32 node, HSAuint64 *bytes) {
    SOFTGPU_REFUSE_AFTER_FORK();
    if (node > softgpu_device_count())
        return HSAKMT_STATUS_INVALID_NODE_UNIT;
    softgpu_address_space_lock(false);
    uint64_t whole = softgpu_node_memory(node), taken = used[node];
    softgpu_address_space_unlock();
    *bytes = whole > taken ? whole - taken : 0;
    return HSAKMT_STATUS_SUCCESS;
}

SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtFreeMemory(void *memory, HSAuint64 size) {
    SOFTGPU_REFUSE_AFTER_FORK();
    (void)size; /* only whole allocations can be freed */
    softgpu_address_space_lock(true);
    struct softgpu_mapping *mapping = softgpu_mapping_at((uintptr_t)memory);
    if (!mapping || mapping->user || mapping->host != memory) {
        softgpu_address_space_unlock();
        return HSAKMT_STATUS_INVALID_PARAMETER;
    }
    softgpu_mapping_remove(mapping);
    if (!mapping->scratch)
        used[mapping->node] -= mapping->size;
    softgpu_address_space_unlock();
    CHECK_UNMAP(mapping->host, mapping->size);
    free(mapping);
    return HSAKMT_STATUS_SUCCESS;
}

/* Reserves a device address for the program's memory. If the device address equalled the host
 * address, HIP would store one record for the two addresses. When HIP unregistered the memory, HIP
 * would remove the record twice and abort. */
static HSAKMT_STATUS register_new(char *user, uint64_t size, HsaMemFlags flags) {
    uint64_t offset = (uintptr_t)user & (SOFTGPU_PAGE - 1), pages = round_up(offset + size);
    struct softgpu_mapping *mapping = calloc(1, sizeof *mapping);
    void *reserved = mapping ? map_pages((struct place){0}, pages, PROT_NONE) : NULL;
    if (!reserved) {
        free(mapping);
        return HSAKMT_STATUS_NO_MEMORY;
    }
    mapping->va = (uintptr_t)reserved;
    mapping->size = pages;
    mapping->host = user - offset;
    mapping->user = user;
    mapping->user_size = size;
    mapping->registrations = 1;
    mapping->flags = flags;
    if (!add(mapping)) {
        munmap(reserved, pages);
        free(mapping);
        return HSAKMT_STATUS_NO_MEMORY;
    }
    CHECK_REGISTERED(mapping->va + offset, size);
    return HSAKMT_STATUS_SUCCESS;
}

SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtRegisterMemoryWithFlags(void *memory, HSAuint64 size,
                                                           HsaMemFlags flags) {
    SOFTGPU_REFUSE_AFTER_FORK();
    if (!memory || size == 0 || size > UINT64_MAX - 2 * SOFTGPU_PAGE)
        return HSAKMT_STATUS_INVALID_PARAMETER;
    softgpu_address_space_lock(true);
    /* Memory that the driver allocated already has a device address. */
    bool known = softgpu_mapping_at((uintptr_t)memory) != NULL;
    struct softgpu_mapping *again = softgpu_mapping_of_user_range(memory, size);
    if (again)
        again->registrations++;
    softgpu_address_space_unlock();
    return known || again ? HSAKMT_STATUS_SUCCESS : register_new(memory, size, flags);
}

SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtRegisterMemory(void *memory, HSAuint64 size) {
    return hsaKmtRegisterMemoryWithFlags(memory, size, (HsaMemFlags){0});
}

SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtRegisterMemoryToNodes(void *memory, HSAuint64 size,
                                                         HSAuint64 count, HSAuint32 *nodes) {
    (void)count, (void)nodes; /* every device reaches the memory */
    return hsaKmtRegisterMemoryWithFlags(memory, size, (HsaMemFlags){0});
}

/* Removes a registration. If several ranges begin at the address, the address is ambiguous and no
 * range is removed; the remaining ranges waste only addresses. For an ambiguous address, the real
 * driver's library reports that no memory is registered. A ROCr 7 with assertions, such as
 * Debian's, aborts after this error, so hsaKmtDeregisterMemory returns success. */
SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtDeregisterMemory(void *memory) {
    SOFTGPU_REFUSE_AFTER_FORK();
    softgpu_address_space_lock(true);
    struct softgpu_mapping *mapping = softgpu_mapping_of(memory, 0);
    bool known = mapping || softgpu_user_range_begins(memory);
    bool last = mapping && mapping->user && --mapping->registrations == 0;
    if (last)
        softgpu_mapping_remove(mapping);
    softgpu_address_space_unlock();
    if (last) {
        CHECK_UNREGISTERED(mapping->va + (uint64_t)(mapping->user - mapping->host));
        CHECK_UNMAP((void *)(uintptr_t)mapping->va, mapping->size);
        free(mapping);
    }
    return known ? HSAKMT_STATUS_SUCCESS : HSAKMT_STATUS_MEMORY_NOT_REGISTERED;
}

/* Returns the device address of memory within a mapping. */
static uint64_t device_address(const struct softgpu_mapping *mapping, const void *memory) {
    if (!mapping->user || (uintptr_t)memory - mapping->va < mapping->size)
        return (uintptr_t)memory;
    return mapping->va + (uint64_t)((const char *)memory - mapping->host);
}

SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtMapMemoryToGPUNodes(void *memory, HSAuint64 size, HSAuint64 *va,
                                                       HsaMemMapFlags flags, HSAuint64 count,
                                                       HSAuint32 *nodes) {
    SOFTGPU_REFUSE_AFTER_FORK();
    (void)flags; /* all mappings permit reading and writing */
    if (count > SOFTGPU_MAX_NODES)
        return HSAKMT_STATUS_INVALID_PARAMETER;
    softgpu_address_space_lock(true);
    struct softgpu_mapping *mapping = softgpu_mapping_of(memory, size); /* mapped whole */
    if (mapping) {
        mapping->node_count = (uint32_t)count;
        memcpy(mapping->nodes, nodes, count * sizeof *nodes);
        if (va)
            *va = device_address(mapping, memory);
    }
    softgpu_address_space_unlock();
    return mapping ? HSAKMT_STATUS_SUCCESS : HSAKMT_STATUS_INVALID_PARAMETER;
}

SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtMapMemoryToGPU(void *memory, HSAuint64 size, HSAuint64 *va) {
    HSAuint32 nodes[SOFTGPU_MAX_NODES];
    HSAuint32 count = softgpu_device_count();
    for (HSAuint32 i = 0; i < count; i++)
        nodes[i] = i + 1;
    return hsaKmtMapMemoryToGPUNodes(memory, size, va, (HsaMemMapFlags){0}, count, nodes);
}

SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtUnmapMemoryToGPU(void *memory) {
    SOFTGPU_REFUSE_AFTER_FORK();
    softgpu_address_space_lock(true);
    struct softgpu_mapping *mapping = softgpu_mapping_of(memory, 0);
    bool known = mapping || softgpu_user_range_begins(memory);
    if (mapping)
        mapping->node_count = 0;
    softgpu_address_space_unlock();
    return known ? HSAKMT_STATUS_SUCCESS : HSAKMT_STATUS_INVALID_PARAMETER;
}

static void describe(const struct softgpu_mapping *mapping, HsaPointerInfo *info) {
    uint64_t offset = mapping->user ? (uint64_t)(mapping->user - mapping->host) : 0;
    info->Type = mapping->user ? HSA_POINTER_REGISTERED_USER : HSA_POINTER_ALLOCATED;
    info->Node = mapping->node;
    info->MemFlags = mapping->flags;
    info->CPUAddress = mapping->host + offset;
    info->GPUAddress = mapping->va + offset;
    info->SizeInBytes = mapping->user ? mapping->user_size : mapping->size;
    info->NMappedNodes = mapping->node_count;
    info->MappedNodes = mapping->nodes; /* a lock of ROCr guards the nodes */
    info->UserData = mapping->user_data;
}

SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtQueryPointerInfo(const void *pointer, HsaPointerInfo *info) {
    SOFTGPU_REFUSE_AFTER_FORK();
    memset(info, 0, sizeof *info);
    softgpu_address_space_lock(false);
    const struct softgpu_mapping *mapping = softgpu_mapping_around(pointer);
    if (mapping && !mapping->scratch)
        describe(mapping, info);
    softgpu_address_space_unlock();
    return info->Type == HSA_POINTER_UNKNOWN ? HSAKMT_STATUS_ERROR : HSAKMT_STATUS_SUCCESS;
}

SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtSetMemoryUserData(const void *pointer, void *user_data) {
    SOFTGPU_REFUSE_AFTER_FORK();
    softgpu_address_space_lock(true);
    struct softgpu_mapping *mapping = softgpu_mapping_of(pointer, 0);
    if (mapping)
        mapping->user_data = user_data;
    softgpu_address_space_unlock();
    return mapping ? HSAKMT_STATUS_SUCCESS : HSAKMT_STATUS_INVALID_PARAMETER;
}
