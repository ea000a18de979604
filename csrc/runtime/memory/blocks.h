/* The life of the blocks of device memory that mgpuMemAlloc hands out: from HIP or from those given
 * back, to the program, and back again. */
#ifndef MGPU_RT_BLOCKS_H
#define MGPU_RT_BLOCKS_H

#include "likely.h"
#include "memory/blocks_pool.h"
#include "mgpu.h"
#include "process/state.h"
#include "proof.h"
#include "shared/thread.h"
#include "streams/streams.h"
#include "telemetry/call.h"

struct cache;

/* A stream whose order a block may rely on: what is freed on it is free for its next work. NULL if
 * the handle is of no such stream. */
static inline struct stream *block_order(const struct thread *thread, hipStream_t handle) {
    struct stream *stream = handle ? stream_find(thread, handle) : NULL;
    return LIKELY(stream && PROOF(order_is_of_a_live_stream, stream_is_live(stream)) &&
                  stream->device < MOST_DEVICES)
               ? stream
               : NULL;
}

/* Whether so much memory is kept when it is freed; else a call of HIP's serves. */
bool block_serves(uint64_t bytes, int device);

/* A block that the program is given, NULL if there is none; *error is HIP's answer. */
struct block_allocated {
    void *address;
    enum call_how how;
    hipError_t error;
};

/* Allocates on the calling thread's device, for work in the order of `stream`; NULL stands for any
 * order. Shared: a block that host and device see at once, of managed memory. The host may write to
 * it at once, so it is handed out again only where no work uses it, and has no stream. */
struct block_allocated block_allocate(uint64_t bytes, int device, struct stream *stream,
                                      bool shared);

/* The outcome of a free, and HIP's answer. */
struct block_freed {
    enum block_verdict {
        FREE_DONE,   /* it is kept */
        FREE_WAITED, /* the device was waited for, and it is kept; else HIP was given it */
        FREE_TO_HIP, /* HIP was given the address */
        FREE_TWICE,  /* nothing: the program has freed it before */
    } verdict;
    hipError_t error;
};

/* Frees what lies at an address, as mgpuMemFree does. A block of the program's is kept that was in
 * use on `stream` (NULL: anywhere). */
struct block_freed block_free(void *address, struct stream *stream);

/* The program frees a block on a stream (NULL: not known), but a graph goes on to use it: nobody
 * else is to get it. False if the program does not hold the block. */
bool block_leave_to_graph(struct block *block, struct stream *stream);

/* A block that the program holds is a graph's from now on. One that it has freed serves the graph
 * again. The graph is gone, and nothing of its work is pending. Each false if it is not so. */
bool block_give_graph(void *address);
bool block_serve_graph(void *address);
bool block_take_from_graph(void *address);

/* A block for work that `stream` captures, in a capture of that number (0: not known): one that was
 * freed there, else one of HIP's. The capture has to bear hipMalloc. NULL if there is none; *error
 * is HIP's answer. */
void *block_alloc_captured(uint64_t bytes, struct stream *stream, uint64_t graph,
                           hipError_t *error);

/* Blocks that the program has not freed, and their bytes. */
size_t block_held(size_t *bytes);

extern const struct cache block_cache;

#endif
