/* What the rest of the runtime asks of the memory cache (memory.c). */
#ifndef MGPU_RT_MEMORY_H
#define MGPU_RT_MEMORY_H

#include <stddef.h>

/* Gives back to HIP all cached blocks of a device, -1: of all devices; returns how many. */
int memory_give_back(int device);

/* Gives back cached blocks of a device, in no special order, until `excess` bytes are gone. */
void memory_give_back_some(int device, size_t excess);

/* Blocks that the program has not freed, and their bytes. */
size_t memory_held(size_t *bytes);

/* Bytes that are held from HIP on a device beyond MGPU_RT_MEMORY_LIMIT. */
size_t memory_excess(int device);

#endif
