/* Runs a model's program as if a person had hoisted its loop by hand: in the least time that a
 * runtime can take.
 *
 * Each module is loaded once, one stream exists, all memory is one allocation, registered memory
 * stays registered, and nothing is queried or checked. This runtime supports only the programs of
 * bench/models. These programs load constants, use one thread and one stream at a time, and wait
 * before they free memory.
 *
 * This runtime also implements mgpu_rt.h's functions for graphs. A graph of a pass is a chain of
 * nodes, one for each kernel and each copy. */
#include "hip.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

static void check(hipError_t error, const char *function) {
    if (error == 0)
        return;
    fprintf(stderr, "by hand: %s failed with %s\n", function, hipGetErrorName(error));
    exit(1);
}

#define CALL(function, ...) check(function(__VA_ARGS__), #function)

/* ---- what is kept, by an address or a size; never removed ---- */

enum { SLOTS = 1 << 13 };

struct table {
    struct slot {
        const void *key;
        void *value;
    } slots[SLOTS];
};

/* Returns the address of the key's value; the value of a new key is NULL. */
static void **kept(struct table *table, const void *key) {
    uint64_t at = ((uintptr_t)key * 0x9E3779B97F4A7C15u) >> 51;
    while (table->slots[at].key && table->slots[at].key != key)
        at = (at + 1) % SLOTS;
    table->slots[at].key = key;
    return &table->slots[at].value;
}

/* ---- modules ---- */

static struct table modules, functions;

EXPORT hipModule_t mgpuModuleLoad(void *data, size_t bytes) {
    (void)bytes;
    void **module = kept(&modules, data);
    if (!*module)
        CALL(hipModuleLoadData, (hipModule_t *)module, data);
    return *module;
}

EXPORT void mgpuModuleUnload(hipModule_t module) {
    (void)module;
}

/* Each module has one kernel. */
EXPORT hipFunction_t mgpuModuleGetFunction(hipModule_t module, const char *name) {
    void **function = kept(&functions, module);
    if (!*function)
        CALL(hipModuleGetFunction, (hipFunction_t *)function, module, name);
    return *function;
}

/* ---- a graph ---- */

struct mgpu_rt_graph {
    hipGraph_t graph;
    hipGraphExec_t executable;
    hipGraphNode_t last;
};

static struct mgpu_rt_graph *building;

static void add_launch(hipFunction_t function, dim3 grid, dim3 block, int32_t smem, void **params) {
    const hipKernelNodeParams node = {.blockDim = block,
                                      .func = function,
                                      .gridDim = grid,
                                      .kernelParams = params,
                                      .sharedMemBytes = (unsigned)smem};
    CALL(hipGraphAddKernelNode, &building->last, building->graph,
         (hipGraphNode_t[]){building->last}, building->last != NULL, &node);
}

static void add_copy(void *dst, void *src, size_t bytes) {
    CALL(hipGraphAddMemcpyNode1D, &building->last, building->graph,
         (hipGraphNode_t[]){building->last}, building->last != NULL, dst, src, bytes,
         MEMCPY_DEFAULT);
}

EXPORT int mgpu_rt_graph_begin(void) {
    building = calloc(1, sizeof *building);
    CALL(hipGraphCreate, &building->graph, 0);
    return 0;
}

EXPORT struct mgpu_rt_graph *mgpu_rt_graph_end(void) {
    struct mgpu_rt_graph *graph = building;
    CALL(hipGraphInstantiate, &graph->executable, graph->graph, NULL, NULL, 0);
    building = NULL;
    return graph;
}

EXPORT int mgpu_rt_graph_launch(struct mgpu_rt_graph *graph, hipStream_t stream) {
    return hipGraphLaunch(graph->executable, stream);
}

EXPORT void mgpu_rt_graph_destroy(struct mgpu_rt_graph *graph) {
    CALL(hipGraphExecDestroy, graph->executable);
    CALL(hipGraphDestroy, graph->graph);
    free(graph);
}

/* ---- the stream ---- */

static hipStream_t the_stream;

EXPORT hipStream_t mgpuStreamCreate(void) {
    if (!the_stream)
        CALL(hipStreamCreate, &the_stream);
    return the_stream;
}

EXPORT void mgpuStreamDestroy(hipStream_t stream) {
    (void)stream;
}

EXPORT void mgpuStreamSynchronize(hipStream_t stream) {
    if (!building)
        CALL(hipStreamSynchronize, stream);
}

EXPORT void mgpuLaunchKernel(hipFunction_t function, intptr_t gridX, intptr_t gridY, intptr_t gridZ,
                             intptr_t blockX, intptr_t blockY, intptr_t blockZ, int32_t smem,
                             hipStream_t stream, void **params, void **extra, size_t count) {
    (void)count;
    if (building) {
        add_launch(function, (dim3){(uint32_t)gridX, (uint32_t)gridY, (uint32_t)gridZ},
                   (dim3){(uint32_t)blockX, (uint32_t)blockY, (uint32_t)blockZ}, smem, params);
        return;
    }
    CALL(hipModuleLaunchKernel, function, gridX, gridY, gridZ, blockX, blockY, blockZ, smem, stream,
         params, extra);
}

EXPORT void mgpuMemcpy(void *dst, void *src, size_t sizeBytes, hipStream_t stream) {
    if (building)
        add_copy(dst, src, sizeBytes);
    else
        CALL(hipMemcpyAsync, dst, src, sizeBytes, MEMCPY_DEFAULT, stream);
}

/* ---- memory ---- */

enum { ARENA_BYTES = 64 << 20, ALIGNMENT = 256, MAX_BLOCKS = 1 << 13 };

/* One allocation from HIP, large enough for all blocks of a program. A block is placed behind the
 * last block that is not free, so each pass gets the same blocks in the same places. */
static struct arena {
    char *memory;
    size_t top; /* the end of the last block */
    int count;
    struct block {
        struct arena *arena;
        size_t begin;
        bool is_free;
    } blocks[MAX_BLOCKS];
} arenas[2]; /* arenas[1] is managed memory */

static struct table places; /* the block at each address */

EXPORT void *mgpuMemAlloc(uint64_t sizeBytes, hipStream_t stream, bool host_shared) {
    const bool managed = host_shared && !stream;
    struct arena *arena = &arenas[managed];
    if (!arena->memory && managed)
        CALL(hipMallocManaged, (void **)&arena->memory, ARENA_BYTES, ATTACH_GLOBAL);
    else if (!arena->memory)
        CALL(hipMalloc, (void **)&arena->memory, ARENA_BYTES);
    const size_t begin = arena->top;
    arena->top += (sizeBytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (arena->top > ARENA_BYTES || arena->count == MAX_BLOCKS)
        check(2, "the arena's size"); /* hipErrorOutOfMemory */
    struct block *block = &arena->blocks[arena->count++];
    *block = (struct block){.arena = arena, .begin = begin};
    *kept(&places, arena->memory + begin) = block;
    return arena->memory + begin;
}

EXPORT void mgpuMemFree(void *ptr, hipStream_t stream) {
    (void)stream;
    struct block *block = *kept(&places, ptr);
    struct arena *arena = block->arena;
    block->is_free = true;
    for (; arena->count && arena->blocks[arena->count - 1].is_free; arena->count--)
        arena->top = arena->blocks[arena->count - 1].begin;
}

struct memref {
    char *allocated;
    char *aligned;
    int64_t offset;
    int64_t sizes_then_strides[];
};

static struct table registered;

EXPORT void mgpuMemHostRegisterMemRef(int64_t rank, struct memref *descriptor, int64_t element) {
    char *begin = descriptor->aligned + descriptor->offset * element;
    void **known = kept(&registered, begin);
    if (*known)
        return;
    int64_t bytes = element;
    for (int64_t i = 0; i < rank; i++)
        bytes *= descriptor->sizes_then_strides[i];
    CALL(hipHostRegister, begin, (size_t)bytes, 0);
    *known = begin;
}

EXPORT void mgpuMemHostUnregisterMemRef(int64_t rank, struct memref *descriptor, int64_t element) {
    (void)rank, (void)descriptor, (void)element;
}
