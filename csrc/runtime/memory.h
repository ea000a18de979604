/* What the rest of the runtime asks of the memory cache (memory.c). */
#ifndef MGPU_RT_MEMORY_H
#define MGPU_RT_MEMORY_H

#include "hip.h"

/* Gives back to HIP all cached blocks of a device, -1: of all devices; returns how many. */
int memory_give_back(int device);

/* Blocks that the program has not freed, and their bytes. */
size_t memory_held(size_t *bytes);

/* Waits for all work on a device, unless it is known that there is none. */
hipError_t memory_wait_for_device(int device);

#endif
