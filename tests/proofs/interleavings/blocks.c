/* The program owns two blocks, on two busy streams. In a second scenario, a freed block waits for a
 * stream that the program holds. In a third scenario, the program and a graph share blocks. */
#include "shared/types.h"
#define POOL_WAYS 1
#include "memory/block_pools.c"
#include "memory/blocks.c"

#include "process/options.h"
#include "program.h"
#include "shared/caches.h"
#include "streams/streams_pool.h"

#include "blocks_checks.h"

void *impl_mgpuMemAlloc(uint64_t bytes, hipStream_t stream, bool shared);
void impl_mgpuMemFree(void *address, hipStream_t stream);
void impl_mgpuStreamSynchronize(hipStream_t stream);
void impl_mgpuStreamDestroy(hipStream_t stream);

enum { BYTES = 200, NO_STREAM = MOST_STREAMS, GRAPH = 1 };

static hipStream_t stream_of(unsigned stream) {
    return stream == NO_STREAM ? NULL : model_stream(stream);
}

static void allocate_bytes(unsigned object, unsigned stream, bool shared, size_t bytes) {
    struct held *held = program_asks(object);
    void *made = impl_mgpuMemAlloc(bytes, stream_of(stream), shared);
    const unsigned number = model_block(made);
    explore_require(world.blocks[number].bytes >= bytes, "a block is too small");
    explore_require(!world.blocks[number].in_graph, "a block was handed out that a graph uses");
    for (unsigned i = 0; i < MOST_STREAMS; i++)
        explore_require(i == stream || model_precedes(i, world.blocks[number].needs[i], stream),
                        "a block was handed out that another stream still works on");
    program_has(held, made);
}

static void allocate(unsigned object, unsigned stream, bool shared) {
    allocate_bytes(object, stream, shared, BYTES);
}

static void release(unsigned object, unsigned stream) {
    PROGRAM_ENDS(object, impl_mgpuMemFree(handle, stream_of(stream)));
}

static void work(unsigned object, unsigned stream) {
    PROGRAM_USES(object, program_launch_on(model_stream(stream), handle));
}

static void work_and_free(unsigned object, unsigned works_on) {
    work(object, works_on);
    release(object, 0);
}

/* Gives a block of the program to a graph; prunes the run if a graph already has the block. */
static void give_graph(unsigned object) {
    struct held *held = program_use(object);
    const unsigned number = model_block(held->handle);
    if (world.blocks[number].in_graph)
        explore_prune();
    world.blocks[number].in_graph = block_give_graph(held->handle, GRAPH);
    world.graph = held->handle;
    held->users--;
}

static void end_graph(void) {
    void *const address = world.graph;
    if (!address || world.graph_ends)
        explore_prune();
    world.graph_ends = true;
    world.blocks[model_block(address)].in_graph = false;
    explore_require(block_take_from_graph(GRAPH) || world.forgot, "a graph has its block");
    world.graph = NULL;
    world.graph_ends = false;
}

/* Captures a graph that begins with the allocation of the graph's block. */
static void capture(unsigned object) {
    hipError_t error;
    if (world.graph)
        explore_prune();
    struct held *held = program_asks(object);
    struct stream *stream = handle_find(&stream_map, model_stream(0));
    void *const address = block_alloc_captured(BYTES, stream, GRAPH, &error);
    world.blocks[model_block(address)].in_graph = true;
    world.graph = held->handle = address;
    held->state = IS_HELD;
}

/* Runs the graph's allocation: the program owns the graph's block again, if the program had freed
 * the block. */
static void serve_graph(unsigned object) {
    if (!world.graph || world.graph_ends)
        explore_prune();
    struct held *held = program_asks(object);
    void *const address = block_serve_graph(BYTES, 0, NULL, GRAPH);
    if (address) {
        held->handle = address;
        held->state = IS_HELD;
    } else {
        held->state = NOT_HELD;
    }
}

static void evict(void) {
    const struct block *block = block_first();
    (void)block_cache.evict((void *)block->handle.key);
}

static void forget(void) {
    bool all_gone = true;
    program_forgets();
    const unsigned lone = explore_lone();
    block_cache.invalidate(0);
    for (const struct block *block = block_first(); block;
         block = (const struct block *)block->handle.next)
        all_gone &= block->state == BLOCK_GONE;
    program_require_gone(all_gone, lone);
}

#define BLOCKS(PLAYS)                                                                              \
    PLAYS("allocate 0 on stream 0", allocate(0, 0, false))                                         \
    PLAYS("allocate 1 on stream 1", allocate(1, 1, false))                                         \
    PLAYS("free 0 on stream 0", release(0, 0))                                                     \
    PLAYS("free 0 on stream 1", release(0, 1))                                                     \
    PLAYS("free 1 on stream 1", release(1, 1))                                                     \
    PLAYS("work with 0 on stream 1", work(0, 1))                                                   \
    PLAYS("synchronise stream 1", impl_mgpuStreamSynchronize(model_stream(1)))                     \
    PLAYS("give back", (void)block_cache.trim(ALL_DEVICES))                                        \
    PLAYS("evict", evict())                                                                        \
    PLAYS("forget", forget())

/* ---- questions about a stream that the program holds ---- */

/* Object 0 is a block, object 1 is stream 1. */
static void work_on_one(void *on) {
    PROGRAM_USES(1, program_launch_on(handle, on));
}

static void ask(void) {
    work_on_one(NULL);
    allocate(0, 0, false);
}

#define BLOCKS_ASKED(PLAYS)                                                                        \
    PLAYS("work on stream 1, and allocate on stream 0", ask())                                     \
    PLAYS("allocate on stream 0", allocate(0, 0, false))                                           \
    PLAYS("free on stream 0", release(0, 0))                                                       \
    PLAYS("work with the block on stream 1", PROGRAM_USES(0, work_on_one(handle)))                 \
    PLAYS("destroy stream 1", PROGRAM_ENDS(1, impl_mgpuStreamDestroy(handle)))                     \
    PLAYS("give streams back", (void)stream_cache.trim(ALL_DEVICES))

/* ---- the same block, while HIP reports ---- */

#define BLOCKS_REPORTED(PLAYS)                                                                     \
    PLAYS("allocate on stream 0", allocate(0, 0, false))                                           \
    PLAYS("free on stream 0", release(0, 0))                                                       \
    PLAYS("other code allocates", model_other_code_allocates())

/* ---- blocks of a graph ---- */

#define BLOCKS_OF_A_GRAPH(PLAYS)                                                                   \
    PLAYS("allocate 1, shared", allocate(1, NO_STREAM, true))                                      \
    PLAYS("free 1", release(1, 0))                                                                 \
    PLAYS("free 0 on stream 0", release(0, 0))                                                     \
    PLAYS("allocate 0 on stream 0", allocate(0, 0, false))                                         \
    PLAYS("a graph begins to use 0", give_graph(0))                                                \
    PLAYS("serve the graph 0", serve_graph(0))                                                     \
    PLAYS("the graph ends", end_graph())                                                           \
    PLAYS("capture with 1", capture(1))                                                            \
    PLAYS("give back", (void)block_cache.trim(ALL_DEVICES))

/* ---- streams that join another ----
 *
 * Object 0 is a block on which stream 0 works, object 1 is an event. */

void impl_mgpuEventRecord(hipEvent_t event, hipStream_t stream);
void impl_mgpuEventSynchronize(hipEvent_t event);
void impl_mgpuEventDestroy(hipEvent_t event);
void impl_mgpuStreamWaitEvent(hipStream_t stream, hipEvent_t event);
hipEvent_t impl_mgpuEventCreate(void);

static void wait_and_allocate(void) {
    PROGRAM_USES(1, impl_mgpuStreamWaitEvent(model_stream(1), handle); model_returned(1));
    allocate(0, 1, false);
}

static void synchronize_and_allocate(void) {
    impl_mgpuStreamSynchronize(model_stream(1));
    allocate(0, 2, false);
}

static void synchronize_event_and_allocate(void) {
    PROGRAM_USES(1, impl_mgpuEventSynchronize(handle));
    allocate(0, 2, false);
}

static void new_event(void) {
    struct held *event = program_ends(1);
    impl_mgpuEventDestroy(event->handle);
    event->handle = impl_mgpuEventCreate();
    event->state = IS_HELD;
}

static void other_code_works(void) {
    PROGRAM_USES(0, model_other_code_launches(0, handle));
    release(0, 0);
}

#define BLOCKS_JOINED(PLAYS)                                                                       \
    PLAYS("record the event on stream 0",                                                          \
          PROGRAM_USES(1, impl_mgpuEventRecord(handle, model_stream(0))))                          \
    PLAYS("record the event on stream 2",                                                          \
          PROGRAM_USES(1, impl_mgpuEventRecord(handle, model_stream(2))))                          \
    PLAYS("stream 1 waits for the event",                                                          \
          PROGRAM_USES(1, impl_mgpuStreamWaitEvent(model_stream(1), handle); model_returned(1)))   \
    PLAYS("stream 1 waits for the event, allocate on it", wait_and_allocate())                     \
    PLAYS("synchronise stream 1, allocate on stream 2", synchronize_and_allocate())                \
    PLAYS("synchronise the event, allocate on stream 2", synchronize_event_and_allocate())         \
    PLAYS("work with the block on stream 0, and free it there", work_and_free(0, 0))               \
    PLAYS("destroy the event, and create one", new_event())                                        \
    PLAYS("other code records the event on stream 2",                                              \
          PROGRAM_USES(1, model_other_code_records(handle, 2)))                                    \
    PLAYS("other code works with the block on stream 0, and the program frees it there",           \
          other_code_works())

/* ---- more blocks than a pool has ways ----
 *
 * The pool of stream 0 has two blocks of one size in a list. Object 0 has this size. Object 1 is
 * smaller, and may be a larger block. */

enum { LARGE = 128 << 10, SMALLER = 96 << 10 };

#define BLOCKS_SIZED(PLAYS)                                                                        \
    PLAYS("allocate 0 on stream 0", allocate_bytes(0, 0, false, LARGE))                            \
    PLAYS("allocate 0 on stream 1", allocate_bytes(0, 1, false, LARGE))                            \
    PLAYS("allocate 1, which is smaller, on stream 0", allocate_bytes(1, 0, false, SMALLER))       \
    PLAYS("allocate 1, which is smaller, on stream 1", allocate_bytes(1, 1, false, SMALLER))       \
    PLAYS("free 0 on stream 0", release(0, 0))                                                     \
    PLAYS("free 1 on stream 0", release(1, 0))                                                     \
    PLAYS("work with 0 on stream 1, and free it on stream 0", work_and_free(0, 1))                 \
    PLAYS("evict", evict())                                                                        \
    PLAYS("give back", (void)block_cache.trim(ALL_DEVICES))                                        \
    PLAYS("forget", forget())

/* ---- a reset ----
 *
 * After a reset, HIP has given the address of object 0 to other code, whose memory the program
 * frees through the library. Another thread detects the reset at the same time. After one more
 * reset, HIP gives the address to a graph. */

static void detect_reset(void) {
    world.forgot = true;
    block_cache.invalidate(0);
}

static void capture_after_reset(void) {
    program_hold(0, NOT_HELD);
    if (!world.forgot)
        explore_prune();
    memset(world.blocks, 0, sizeof world.blocks);
    capture(1);
}

#define BLOCKS_OF_A_RESET(PLAYS)                                                                   \
    PLAYS("work with 0 on stream 1, and free it on stream 0", work_and_free(0, 1))                 \
    PLAYS("detect the reset", detect_reset())                                                      \
    PLAYS("reset, and capture with 1", capture_after_reset())

/* The program owns object 0, and work on stream 1 uses this object. The pool of stream 0 contains a
 * free block. */
static void set_up(bool exclusive) {
    model_start(2, exclusive);
    void *first = impl_mgpuMemAlloc(BYTES, model_stream(0), false);
    world.held[0] =
        (struct held){.state = IS_HELD, .handle = impl_mgpuMemAlloc(BYTES, model_stream(0), false)};
    impl_mgpuMemFree(first, model_stream(0));
    program_launch_on(model_stream(1), world.held[0].handle);
}

/* The program has freed a block on which stream 0 works, and owns an event. */
static void set_up_joined(bool exclusive) {
    model_start(3, exclusive);
    program_reports();
    void *const block = impl_mgpuMemAlloc(BYTES, model_stream(0), false);
    program_launch_on(model_stream(0), block);
    impl_mgpuMemFree(block, model_stream(0));
    world.held[1] = (struct held){.state = IS_HELD, .handle = impl_mgpuEventCreate()};
}

/* The program has freed a block on stream 0, while stream 1 was working on the block. */
static void free_beside_work(void) {
    void *block = impl_mgpuMemAlloc(BYTES, model_stream(0), false);
    program_launch_on(model_stream(1), block);
    impl_mgpuMemFree(block, model_stream(0));
    world.held[1] = (struct held){.state = IS_HELD, .handle = model_stream(1)};
}

/* HIP destroys each stream that the program destroys. A thread asks about a stream that another
 * thread destroys. */
static void set_up_asked(bool exclusive) {
    model_start(2, exclusive);
    cache_limits.streams = 0;
    free_beside_work();
}

/* HIP reports calls. */
static void set_up_reported(bool exclusive) {
    model_start(2, exclusive);
    program_reports_by_word();
    free_beside_work();
}

/* The program owns object 0, the only block. */
static void set_up_reset(bool exclusive) {
    model_start(2, exclusive);
    world.held[0] =
        (struct held){.state = IS_HELD, .handle = impl_mgpuMemAlloc(BYTES, model_stream(0), false)};
}

/* One more idle block than these exceeds the limit. The index contains object 0, which the program
 * has freed and got again. */
static void set_up_sized(bool exclusive) {
    void *blocks[4];
    model_start(2, exclusive);
    cache_limits.memory_bytes[0] = 4 * LARGE;
    for (unsigned i = 0; i < 4; i++)
        blocks[i] = impl_mgpuMemAlloc(LARGE, model_stream(0), false);
    for (unsigned i = 1; i < 4; i++)
        impl_mgpuMemFree(blocks[i], model_stream(0));
    void *const other = impl_mgpuMemAlloc(LARGE, model_stream(0), false);
    impl_mgpuMemFree(blocks[0], model_stream(0));
    world.held[0] =
        (struct held){.state = IS_HELD, .handle = impl_mgpuMemAlloc(LARGE, model_stream(0), false)};
    impl_mgpuMemFree(other, model_stream(0));
    (void)block_cache.evict(other);
    fetch_or_relaxed(&care_of_frees, CARE_OF_BOUNDS);
    cache_limits.memory_bytes[0] = 2 * LARGE;
}

SCENARIO(blocks, "blocks", false, set_up, BLOCKS);
SCENARIO(blocks_asked, "blocks-asked", false, set_up_asked, BLOCKS_ASKED);
SCENARIO(blocks_reported, "blocks-reported", true, set_up_reported, BLOCKS_REPORTED);
SCENARIO(blocks_word, "blocks-word", false, set_up_reported, BLOCKS_REPORTED);
SCENARIO(blocks_graph, "blocks-graph", false, set_up, BLOCKS_OF_A_GRAPH);
SCENARIO(blocks_joined, "blocks-joined", true, set_up_joined, BLOCKS_JOINED);
SCENARIO(blocks_reset, "blocks-reset", false, set_up_reset, BLOCKS_OF_A_RESET);
SCENARIO(blocks_sized, "blocks-sized", false, set_up_sized, BLOCKS_SIZED);
