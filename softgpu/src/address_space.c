/* Finds the mapping that contains an address, by binary search in an array in order of GPU
 * addresses. Each dispatch looks up its ranges in this table once, and many HIP calls read the
 * table, so readers share the lock. Adding a mapping moves the array's tail; the move takes less
 * time than an mmap. */
#include "memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static struct softgpu_mapping **mappings;
static size_t count, capacity;
static size_t user_count; /* number of the mappings that are registered user ranges */
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

void softgpu_address_space_lock(bool exclusive) {
    if (exclusive)
        pthread_rwlock_wrlock(&lock);
    else
        pthread_rwlock_rdlock(&lock);
}

void softgpu_address_space_unlock(void) {
    pthread_rwlock_unlock(&lock);
}

/* Returns the number of mappings that begin at or below an address. */
static size_t rank(uint64_t va) {
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (mappings[middle]->va <= va)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct softgpu_mapping *softgpu_mapping_at(uint64_t va) {
    size_t after = rank(va);
    if (after == 0)
        return NULL;
    struct softgpu_mapping *mapping = mappings[after - 1];
    return va - mapping->va < mapping->size ? mapping : NULL;
}

/* The search tries all registered ranges, because few exist at a time and lookups are rare. */
static struct softgpu_mapping *find_user(const char *pointer) {
    struct softgpu_mapping *inside = NULL;
    size_t left = user_count;
    for (size_t i = 0; left > 0 && i < count; i++) {
        struct softgpu_mapping *mapping = mappings[i];
        if (!mapping->user)
            continue;
        left--;
        if (mapping->user == pointer)
            return mapping;
        if (pointer > mapping->user && pointer < mapping->user + mapping->user_size)
            inside = mapping;
    }
    return inside;
}

struct softgpu_mapping *softgpu_mapping_around(const void *pointer) {
    struct softgpu_mapping *mapping = softgpu_mapping_at((uintptr_t)pointer);
    return mapping ? mapping : find_user(pointer);
}

struct softgpu_mapping *softgpu_mapping_of_user_range(const void *start, uint64_t size) {
    struct softgpu_mapping *found = NULL;
    for (size_t i = 0; i < count && start; i++) {
        if (mappings[i]->user != start || (size && mappings[i]->user_size != size))
            continue;
        if (found)
            return NULL;
        found = mappings[i];
    }
    return found;
}

bool softgpu_user_range_begins(const void *start) {
    for (size_t i = 0; i < count; i++)
        if (mappings[i]->user && mappings[i]->user == start)
            return true;
    return false;
}

struct softgpu_mapping *softgpu_mapping_of(const void *pointer, uint64_t size) {
    struct softgpu_mapping *mapping = softgpu_mapping_at((uintptr_t)pointer);
    return mapping ? mapping : softgpu_mapping_of_user_range(pointer, size);
}

bool softgpu_mapping_add(struct softgpu_mapping *mapping) {
    if (count == capacity) {
        size_t wanted = capacity ? 2 * capacity : 64;
        struct softgpu_mapping **grown = realloc(mappings, wanted * sizeof *grown);
        if (!grown)
            return false;
        mappings = grown;
        capacity = wanted;
    }
    size_t at = rank(mapping->va);
    memmove(&mappings[at + 1], &mappings[at], (count - at) * sizeof *mappings);
    mappings[at] = mapping;
    count++;
    user_count += mapping->user != NULL;
    return true;
}

void softgpu_mapping_remove(struct softgpu_mapping *mapping) {
    size_t at = rank(mapping->va) - 1;
    count--;
    user_count -= mapping->user != NULL;
    memmove(&mappings[at], &mappings[at + 1], (count - at) * sizeof *mappings);
}

bool softgpu_registered_address(uint64_t va, uint64_t *known_as) {
    softgpu_address_space_lock(false);
    const char *pointer = (const char *)(uintptr_t)va;
    const struct softgpu_mapping *mapping = find_user(pointer);
    if (mapping)
        *known_as = mapping->va + (uint64_t)(pointer - mapping->host);
    softgpu_address_space_unlock();
    return mapping != NULL;
}

bool softgpu_is_host_memory(uint64_t va) {
    char byte;
    const struct iovec here = {&byte, 1}, there = {(void *)(uintptr_t)va, 1};
    softgpu_address_space_lock(false);
    const bool mapped = softgpu_mapping_at(va) != NULL;
    softgpu_address_space_unlock();
    return !mapped && process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 1;
}

static struct softgpu_range range_of(const struct softgpu_mapping *mapping) {
    return (struct softgpu_range){mapping->va, mapping->size, mapping->host, mapping->image};
}

void softgpu_name_ranges(unsigned image,
                         bool (*is_from)(const struct softgpu_range *range, const void *of),
                         const void *of) {
    softgpu_address_space_lock(true);
    for (size_t i = 0; i < count; i++) {
        struct softgpu_mapping *mapping = mappings[i];
        const struct softgpu_range range = range_of(mapping);
        if (!mapping->image && !mapping->scratch && !mapping->user && is_from(&range, of))
            mapping->image = image;
    }
    softgpu_address_space_unlock();
}

bool softgpu_find_range(uint64_t va, struct softgpu_range *range) {
    softgpu_address_space_lock(false);
    const struct softgpu_mapping *mapping = softgpu_mapping_at(va);
    bool usable = mapping && !mapping->scratch;
    if (usable)
        *range = range_of(mapping);
    softgpu_address_space_unlock();
    return usable;
}
