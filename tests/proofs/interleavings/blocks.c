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

enum { BYTES = 200, NO_STREAM = MOST_STREAMS };

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
    struct held *held = program_ends(object);
    impl_mgpuMemFree(held->handle, stream_of(stream));
    program_has_ended(held);
}

static void work(unsigned object, unsigned stream) {
    struct held *held = program_use(object);
    program_launch_on(model_stream(stream), held->handle);
    held->users--;
}

/* Gives a block of the program to a graph; prunes the run if a graph already has the block. */
static void give_graph(unsigned object) {
    struct held *held = program_use(object);
    const unsigned number = model_block(held->handle);
    if (world.blocks[number].in_graph)
        explore_prune();
    world.blocks[number].in_graph = block_give_graph(held->handle);
    world.graph = held->handle;
    held->users--;
}

static void end_graph(void) {
    void *const address = world.graph;
    if (!address || world.graph_ends)
        explore_prune();
    world.graph_ends = true;
    world.blocks[model_block(address)].in_graph = false;
    explore_require(block_take_from_graph(address) || world.forgot, "a graph has its block");
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
    void *const address = block_alloc_captured(BYTES, stream, 1, &error);
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
    void *const address = world.graph;
    if (block_serve_graph(address, BYTES)) {
        held->handle = address;
        held->state = IS_HELD;
    } else {
        held->state = NOT_HELD;
    }
}

enum operation {
    ALLOC_0,
    ALLOC_1,
    FREE_0,
    FREE_0_ELSEWHERE,
    FREE_1,
    WORK_0,
    SYNC_1,
    GIVE_BACK,
    EVICT,
    FORGET,
    OPERATIONS
};
static const char *const names[] = {"allocate 0 on stream 0",
                                    "allocate 1 on stream 1",
                                    "free 0 on stream 0",
                                    "free 0 on stream 1",
                                    "free 1 on stream 1",
                                    "work with 0 on stream 1",
                                    "synchronise stream 1",
                                    "give back",
                                    "evict",
                                    "forget"};

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

static void play(unsigned operation) {
    switch (operation) {
    case ALLOC_0:
        allocate(0, 0, false);
        break;
    case ALLOC_1:
        allocate(1, 1, false);
        break;
    case FREE_0:
    case FREE_0_ELSEWHERE:
        release(0, operation - FREE_0);
        break;
    case FREE_1:
        release(1, 1);
        break;
    case WORK_0:
        work(0, 1);
        break;
    case SYNC_1:
        impl_mgpuStreamSynchronize(model_stream(1));
        break;
    case GIVE_BACK:
        (void)block_cache.trim(ALL_DEVICES);
        break;
    case EVICT:
        evict();
        break;
    default:
        forget();
    }
}

/* ---- questions about a stream that the program holds ---- */

/* Object 0 is a block, object 1 is stream 1. */
enum asked_operation {
    ASK,
    ASK_LATER,
    FREE_BLOCK,
    WORK_ON,
    DESTROY,
    GIVE_STREAMS_BACK,
    ASKED_OPERATIONS
};
static const char *const asked_names[] = {"work on stream 1, and allocate on stream 0",
                                          "allocate on stream 0",
                                          "free on stream 0",
                                          "work with the block on stream 1",
                                          "destroy stream 1",
                                          "give streams back"};

/* Launches a kernel on stream 1. The thread then counts as the only one that works on the stream,
 * as if the thread had created the stream. */
static void work_alone(void *on) {
    struct held *held = program_use(1);
    struct stream *stream = handle_find(&stream_map, held->handle);
    store_relaxed(&stream->user, thread_get());
    program_launch_on(held->handle, on);
    held->users--;
}

static void play_asked(unsigned operation) {
    struct held *held;
    switch (operation) {
    case ASK:
        work_alone(NULL);
        allocate(0, 0, false);
        break;
    case ASK_LATER:
        allocate(0, 0, false);
        break;
    case FREE_BLOCK:
        release(0, 0);
        break;
    case WORK_ON:
        held = program_use(0);
        work_alone(held->handle);
        held->users--;
        break;
    case DESTROY:
        held = program_ends(1);
        impl_mgpuStreamDestroy(held->handle);
        program_has_ended(held);
        break;
    default:
        (void)stream_cache.trim(ALL_DEVICES);
    }
}

/* ---- questions about a stream of another thread, while HIP reports ---- */

enum reported_operation { ASK_OTHERS, FREE_OWN, OTHER_CODE_DESTROYS, OTHER_CODE, REPORTED };
static const char *const reported_names[] = {"allocate on stream 0", "free on stream 0",
                                             "other code destroys stream 1",
                                             "other code allocates"};

static void play_reported(unsigned operation) {
    struct held *held;
    switch (operation) {
    case ASK_OTHERS:
        allocate(0, 0, false);
        break;
    case FREE_OWN:
        release(0, 0);
        break;
    case OTHER_CODE_DESTROYS:
        held = program_ends(1);
        model_other_code_destroys(held->handle);
        program_has_ended(held);
        break;
    default:
        model_other_code_allocates();
    }
}

enum graph_operation {
    ALLOC_SHARED,
    FREE_SHARED,
    FREE_KEPT,
    ALLOC_OTHER,
    GIVE_GRAPH,
    SERVE_GRAPH,
    END_GRAPH,
    CAPTURE,
    GIVE_ALL_BACK,
    GRAPH_OPERATIONS
};
static const char *const graph_names[] = {"allocate 1, shared",
                                          "free 1",
                                          "free 0 on stream 0",
                                          "allocate 0 on stream 0",
                                          "a graph begins to use 0",
                                          "serve the graph 0",
                                          "the graph ends",
                                          "capture with 1",
                                          "give back"};

static void play_graph(unsigned operation) {
    switch (operation) {
    case ALLOC_SHARED:
        allocate(1, NO_STREAM, true);
        break;
    case FREE_SHARED:
        release(1, 0);
        break;
    case FREE_KEPT:
        release(0, 0);
        break;
    case ALLOC_OTHER:
        allocate(0, 0, false);
        break;
    case GIVE_GRAPH:
        give_graph(0);
        break;
    case SERVE_GRAPH:
        serve_graph(0);
        break;
    case END_GRAPH:
        end_graph();
        break;
    case CAPTURE:
        capture(1);
        break;
    default:
        (void)block_cache.trim(ALL_DEVICES);
    }
}

/* ---- streams that join another ----
 *
 * Object 0 is a block on which stream 0 works, object 1 is an event. */

enum joined_operation {
    RECORD_ON_0,
    RECORD_ON_2,
    WAIT_ON_1,
    WAIT_AND_ALLOCATE,
    SYNC_1_AND_ALLOCATE,
    SYNC_EVENT_AND_ALLOCATE,
    WORK_AND_FREE,
    NEW_EVENT,
    OTHER_CODE_RECORDS,
    OTHER_CODE_WORKS,
    JOINED_OPERATIONS
};
static const char *const joined_names[] = {"record the event on stream 0",
                                           "record the event on stream 2",
                                           "stream 1 waits for the event",
                                           "stream 1 waits for the event, allocate on it",
                                           "synchronise stream 1, allocate on stream 2",
                                           "synchronise the event, allocate on stream 2",
                                           "work with the block on stream 0, and free it there",
                                           "destroy the event, and create one",
                                           "other code records the event on stream 2",
                                           "other code works with the block on stream 0, and the "
                                           "program frees it there"};

void impl_mgpuEventRecord(hipEvent_t event, hipStream_t stream);
void impl_mgpuEventSynchronize(hipEvent_t event);
void impl_mgpuEventDestroy(hipEvent_t event);
void impl_mgpuStreamWaitEvent(hipStream_t stream, hipEvent_t event);
hipEvent_t impl_mgpuEventCreate(void);

static void record(unsigned stream) {
    struct held *event = program_use(1);
    impl_mgpuEventRecord(event->handle, model_stream(stream));
    event->users--;
}

static void wait_for_event(unsigned stream) {
    struct held *event = program_use(1);
    impl_mgpuStreamWaitEvent(model_stream(stream), event->handle);
    model_returned(stream);
    event->users--;
}

static void new_event(void) {
    struct held *event = program_ends(1);
    impl_mgpuEventDestroy(event->handle);
    event->handle = impl_mgpuEventCreate();
    event->state = IS_HELD;
}

static void other_code_works(void) {
    struct held *held = program_use(0);
    model_other_code_launches(0, held->handle);
    held->users--;
    release(0, 0);
}

static void play_joined(unsigned operation) {
    struct held *event;
    switch (operation) {
    case RECORD_ON_0:
        record(0);
        break;
    case RECORD_ON_2:
        record(2);
        break;
    case WAIT_ON_1:
        wait_for_event(1);
        break;
    case WAIT_AND_ALLOCATE:
        wait_for_event(1);
        allocate(0, 1, false);
        break;
    case SYNC_1_AND_ALLOCATE:
        impl_mgpuStreamSynchronize(model_stream(1));
        allocate(0, 2, false);
        break;
    case SYNC_EVENT_AND_ALLOCATE:
        event = program_use(1);
        impl_mgpuEventSynchronize(event->handle);
        event->users--;
        allocate(0, 2, false);
        break;
    case WORK_AND_FREE:
        work(0, 0);
        release(0, 0);
        break;
    case NEW_EVENT:
        new_event();
        break;
    case OTHER_CODE_WORKS:
        other_code_works();
        break;
    default:
        event = program_use(1);
        model_other_code_records(event->handle, 2);
        event->users--;
    }
}

/* ---- lists by size ----
 *
 * The pool of stream 0 has three blocks of one size, of which two are in a list. Object 0 has this
 * size. Object 1 is smaller, and may be a larger block. */

enum { LARGE = 128 << 10, SMALLER = 96 << 10 };

enum sized_operation {
    ALLOC_LARGE,
    ALLOC_LARGE_ELSEWHERE,
    ALLOC_SMALLER,
    ALLOC_SMALLER_ELSEWHERE,
    FREE_SIZED_0,
    FREE_SIZED_1,
    WORK_AND_FREE_0,
    EVICT_SIZED,
    GIVE_SIZES_BACK,
    FORGET_SIZES,
    SIZED_OPERATIONS
};
static const char *const sized_names[] = {"allocate 0 on stream 0",
                                          "allocate 0 on stream 1",
                                          "allocate 1, which is smaller, on stream 0",
                                          "allocate 1, which is smaller, on stream 1",
                                          "free 0 on stream 0",
                                          "free 1 on stream 0",
                                          "work with 0 on stream 1, and free it on stream 0",
                                          "evict",
                                          "give back",
                                          "forget"};

static void play_sized(unsigned operation) {
    switch (operation) {
    case ALLOC_LARGE:
    case ALLOC_LARGE_ELSEWHERE:
        allocate_bytes(0, operation - ALLOC_LARGE, false, LARGE);
        break;
    case ALLOC_SMALLER:
    case ALLOC_SMALLER_ELSEWHERE:
        allocate_bytes(1, operation - ALLOC_SMALLER, false, SMALLER);
        break;
    case FREE_SIZED_0:
    case FREE_SIZED_1:
        release(operation - FREE_SIZED_0, 0);
        break;
    case WORK_AND_FREE_0:
        work(0, 1);
        release(0, 0);
        break;
    case EVICT_SIZED:
        evict();
        break;
    case GIVE_SIZES_BACK:
        (void)block_cache.trim(ALL_DEVICES);
        break;
    default:
        forget();
    }
}

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

/* HIP destroys each stream that the program destroys. */
static void set_up_asked(bool exclusive) {
    model_start(2, exclusive);
    cache_limits.streams = 0;
    free_beside_work();
}

/* HIP reports calls. */
static void set_up_reported(bool exclusive) {
    model_start(2, exclusive);
    program_reports();
    free_beside_work();
}

/* One more idle block than these exceeds the limit. */
static void set_up_sized(bool exclusive) {
    void *blocks[4];
    model_start(2, exclusive);
    cache_limits.memory_bytes[0] = 3 * LARGE;
    for (unsigned i = 0; i < 4; i++)
        blocks[i] = impl_mgpuMemAlloc(LARGE, model_stream(0), false);
    world.held[0] = (struct held){.state = IS_HELD, .handle = blocks[0]};
    for (unsigned i = 1; i < 4; i++)
        impl_mgpuMemFree(blocks[i], model_stream(0));
}

const struct scenario explore_blocks_asked =
    SCENARIO("blocks-asked", true, ASKED_OPERATIONS, set_up_asked, play_asked, asked_names);
const struct scenario explore_blocks_reported =
    SCENARIO("blocks-reported", true, REPORTED, set_up_reported, play_reported, reported_names);
const struct scenario explore_blocks_joined =
    SCENARIO("blocks-joined", true, JOINED_OPERATIONS, set_up_joined, play_joined, joined_names);
const struct scenario explore_blocks = SCENARIO("blocks", false, OPERATIONS, set_up, play, names);
const struct scenario explore_blocks_graph =
    SCENARIO("blocks-graph", false, GRAPH_OPERATIONS, set_up, play_graph, graph_names);
const struct scenario explore_blocks_sized =
    SCENARIO("blocks-sized", false, SIZED_OPERATIONS, set_up_sized, play_sized, sized_names);
