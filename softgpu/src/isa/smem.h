/* Executes a scalar memory instruction. */
#ifndef SOFTGPU_SMEM_H
#define SOFTGPU_SMEM_H

enum {
    SM_LOAD = 1,
    SM_BUFFER_LOAD,
    SM_SCRATCH_LOAD,
    SM_STORE,
    SM_BUFFER_STORE,
    SM_SCRATCH_STORE,
    SM_ATOMIC,
    SM_BUFFER_ATOMIC,
    SM_CACHE,
    SM_DISCARD,
    SM_PROBE,
    SM_MEMTIME,
    SM_MEMREALTIME,
};

#endif
