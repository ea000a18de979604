/* Replaces the emulated device when a program runs on a GPU. On a GPU, only the program's calls are
 * checked. When the program frees a block, the block leaves the map, because HIP may then reuse the
 * address. */
#include "access.h"
#include "calls.h"
#include "defined.h"
#include "hooks.h"
#include "images.h"
#include "launch.h"
#include "past.h"
#include "race.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static struct {
    pthread_mutex_t lock;
    struct softgpu_block *blocks;
    size_t count, capacity;
    unsigned made;
} map = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct softgpu_block *block_of(uint64_t va) {
    for (size_t n = map.count; n-- > 0;)
        if (va - map.blocks[n].va < map.blocks[n].size)
            return &map.blocks[n];
    return NULL;
}

static void remove_block(struct softgpu_block *block) {
    free(block->past);
    *block = map.blocks[--map.count];
}

static bool grow(void) {
    if (map.count < map.capacity)
        return true;
    size_t wanted = map.capacity ? 2 * map.capacity : 64;
    struct softgpu_block *grown = realloc(map.blocks, wanted * sizeof *grown);
    if (!grown)
        return false;
    map.blocks = grown;
    map.capacity = wanted;
    return true;
}

void softgpu_shadow_add(uint64_t va, uint64_t size, enum softgpu_block_kind kind,
                        const struct softgpu_place *place, uint32_t op) {
    pthread_mutex_lock(&map.lock);
    struct softgpu_block *old = block_of(va);
    if (old)
        remove_block(old); /* HIP freed the block without a call of the library */
    if (grow())
        map.blocks[map.count++] = (struct softgpu_block){.va = va,
                                                         .size = size,
                                                         .registered = kind == MEMORY_REGISTERED,
                                                         .shared = kind == MEMORY_SHARED,
                                                         .past = softgpu_past_make(),
                                                         .number = ++map.made,
                                                         .op = op,
                                                         .made = *place};
    pthread_mutex_unlock(&map.lock);
}

void softgpu_shadow_end(uint64_t va, const struct softgpu_place *place) {
    (void)place;
    pthread_mutex_lock(&map.lock);
    struct softgpu_block *block = block_of(va);
    if (block && block->va == va)
        remove_block(block);
    pthread_mutex_unlock(&map.lock);
}

bool softgpu_shadow_holds(uint64_t va, struct softgpu_block *copy) {
    pthread_mutex_lock(&map.lock);
    const struct softgpu_block *block = block_of(va);
    if (block)
        *copy = *block;
    pthread_mutex_unlock(&map.lock);
    return block != NULL;
}

enum softgpu_end softgpu_shadow_judge(uint64_t va, struct softgpu_block *block) {
    if (!softgpu_shadow_holds(va, block))
        return SOFTGPU_NO_BLOCK;
    return block->va == va ? SOFTGPU_LIVE : SOFTGPU_NOT_ITS_BEGIN;
}

struct softgpu_finding softgpu_shadow_find(uint64_t va, uint64_t bytes) {
    struct softgpu_finding finding = {.verdict = SOFTGPU_ALLOWED};
    finding.has_block = softgpu_shadow_holds(va, &finding.block);
    if (finding.has_block && bytes > finding.block.va + finding.block.size - va)
        finding.verdict = SOFTGPU_OUTSIDE;
    return finding;
}

bool softgpu_check_device_address(const void *memory, uint64_t *va) {
    (void)memory, (void)va;
    return false;
}

/* Reads the process's memory map. Returns whether the address lies in writable memory that does not
 * belong to a device. */
bool softgpu_check_is_host(const void *memory) {
    FILE *maps = fopen("/proc/self/maps", "re");
    unsigned long long begin, end, at = (uintptr_t)memory;
    char line[512], access[8], device[256];
    bool host = false;
    while (maps && !host && fgets(line, sizeof line, maps)) {
        device[0] = '\0';
        int read = sscanf(line, "%llx-%llx %7s %*s %*s %*s %255s", &begin, &end, access, device);
        host = read >= 3 && at >= begin && at < end && access[1] == 'w' &&
               strncmp(device, "/dev/", 5) != 0;
    }
    if (maps)
        fclose(maps);
    return host;
}

void softgpu_launch_called(uint32_t op, const struct softgpu_clock *clock) {
    (void)op, (void)clock;
}

void softgpu_launch_await(void) {}

void softgpu_image_add(const void *image) {
    (void)image;
}

void softgpu_report_other(struct softgpu_report *report, uint32_t number, uint64_t pc,
                          const char *access) {
    (void)pc;
    softgpu_report_open(report, "other");
    softgpu_report_op(report, number);
    if (access)
        softgpu_report_text(report, "access", access);
    softgpu_report_close(report);
}

struct softgpu_conflict softgpu_race_move(struct softgpu_cells *cells, uint64_t begin, uint64_t va,
                                          uint64_t bytes, bool writes,
                                          const struct softgpu_clock *clock) {
    (void)cells, (void)begin, (void)va, (void)bytes, (void)writes, (void)clock;
    return (struct softgpu_conflict){0};
}

/* The functions below do nothing, because only the emulated device tracks undefined bits. */
size_t softgpu_copy_back(uint64_t from, uint64_t bytes, const struct softgpu_place *place) {
    (void)from, (void)bytes, (void)place;
    return 0;
}

void softgpu_copy_returned(size_t number) {
    (void)number;
}

void softgpu_check_filled(uint64_t to, uint64_t bytes) {
    (void)to, (void)bytes;
}
