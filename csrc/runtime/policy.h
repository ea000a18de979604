/* The seam between the fast path and the policy.
 *
 * The runtime calls a policy when a table has no answer. The policy lives in Python (mgpu_rt/) if
 * an interpreter can be had; policy.c holds the built-in one, which keeps everything.
 *
 * This header is read by the C compiler and, without its preprocessor lines, by cffi. Errors are
 * hipError_t as int, handles are HIP's. */
#ifndef MGPU_RT_POLICY_H
#define MGPU_RT_POLICY_H

#include <stddef.h>
#include <stdint.h>

/* What the runtime asks of a policy. Called from any thread, several at once, never with a lock of
 * the runtime's held; a call that fails returns HIP's error number and leaves its result alone. */
struct mgpu_policy {
    /* Loads an image on the current device. The bytes stay where they are until module_unload. */
    int (*module_load)(const void *image, size_t size, int device, void **module);
    int (*module_unload)(void *module);
    int (*function_get)(void *module, const char *name, void **function);
    /* A new stream of the current device, with HIP's default flags: it keeps its order with the
     * null stream, as stock's does. */
    int (*stream_create)(int device, void **stream);
    int (*stream_destroy)(void *stream);
    /* Device memory from HIP, on the current device; bytes is a multiple of 256. Called when
     * nothing cached will do; hipErrorOutOfMemory makes the runtime give back all that is cached
     * and ask again. */
    int (*memory_alloc)(int device, size_t bytes, void **ptr);
    /* Gives a block back to HIP that the runtime has taken out of its table. */
    int (*memory_free)(void *ptr);
    /* More is held on the device than MGPU_RT_MEMORY_LIMIT allows, by `excess` bytes: cached blocks
     * are to go (memory_retire), if there are any. */
    void (*memory_trim)(int device, size_t excess);
    /* The process is about to end; what nobody held was unloaded and destroyed. The last call. */
    void (*shutdown)(void);
};

/* What a policy asks of the runtime. Every call is thread-safe and short: none calls HIP. */
struct mgpu_host {
    const char *hip_path;
    long module_limit, stream_limit;
    /* How often the program loaded this module so far; 0 if it is not in the table. */
    uint64_t (*module_loads)(void *module);
    /* Loads that were not followed by an unload. */
    uint64_t (*module_references)(void *module);
    /* Takes a module out of the table if the program does not hold it and no stream of the runtime
     * has work pending; 1 if it did: then the policy unloads it. 0: it has to stay. */
    int (*module_retire)(void *module);
    /* Takes a stream out of the table if it is idle and not handed out; 1 if it did. */
    int (*stream_retire)(void *stream);
    /* Streams of the runtime that are idle and kept for reuse. */
    size_t (*streams_idle)(void);
    /* How often a block was handed out so far; 0 if it is not in the table. */
    uint64_t (*memory_uses)(void *ptr);
    /* Takes a block out of the table if it is cached; 1 if it did: then the policy frees it. */
    int (*memory_retire)(void *ptr);
    /* For the statistics: a call of HIP's function of this name (with its "hip") was made without
     * going through the runtime's own table, and took so long. NULL: there are no statistics. */
    void (*count)(const char *function, uint64_t nanoseconds);
    /* A line on stderr, prefixed; only with MGPU_RT_VERBOSE. */
    void (*say)(const char *text);
    /* The interpreter ends: from now on the built-in policy serves. */
    void (*detach)(void);
};

#endif
