/* Tells the checker where the blocks of malloc end. */
#ifndef SOFTGPU_CHECK_HOST_BLOCKS_H
#define SOFTGPU_CHECK_HOST_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

struct softgpu_host_block {
    uint64_t begin, size; /* as the program requested it */
};

/* Finds the living block that contains an address or begins there. Returns false for all other
 * memory: of a stack, of a program or library, mapped, freed, or of an allocator that does not use
 * malloc. */
bool softgpu_find_host_block(uint64_t address, struct softgpu_host_block *found);

#endif
