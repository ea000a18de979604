/* Copies on two streams through a pinned buffer that fits only one copy. */
#include "memory/staging.h"
#define STAGING_COUNT 1
#define STAGING_BYTES 64
#define STAGING_DOWN 64
#include "memory/staging.c"

#include "program.h"

void *impl_mgpuMemAlloc(uint64_t bytes, hipStream_t stream, bool shared);

enum { BYTES = 48 };
static void *blocks[2];

/* The caller may change the source as soon as the call returns. */
static void up(unsigned object) {
    struct held *held = program_use(object);
    unsigned char from[BYTES];
    world.value[explore_self()] = (unsigned char)(explore_self() + 1);
    memset(from, explore_self() + 1, BYTES);
    impl_mgpuMemcpy(blocks[object], from, BYTES, held->handle);
    memset(from, 0xEE, BYTES);
    held->users--;
}

static void down(unsigned object) {
    struct held *held = program_use(object);
    unsigned char to[BYTES] = {0};
    hipError_t error;
    const struct copy copy = {thread_get(),   handle_find(&stream_map, held->handle),
                              held->handle,   to,
                              blocks[object], BYTES};
    if (!staging_down(&copy, &error)) /* mgpuMemcpy calls staging_down on NVIDIA's driver only */
        (void)hip.MemcpyAsync(to, copy.from, BYTES, hipMemcpyDefault, held->handle);
    explore_require(to[0] == model_content(blocks[object]), "a copy has not arrived");
    held->users--;
}

/* Waits until the stream is idle, and releases the stream's buffers. */
static void leave(unsigned object) {
    struct held *held = program_hold(object, IS_HELD);
    struct stream *stream = handle_find(&stream_map, held->handle);
    held->state = IS_ENDED;
    (void)stream_wait(stream);
    release_of_stream(stream);
    held->state = IS_HELD;
}

static void forget(void) {
    program_forgets();
    const unsigned lone = explore_lone();
    invalidate_staging(ALL_DEVICES);
    program_require_gone(!all[0].owner && !all[0].memory, lone);
}

#define COPIES(PLAYS)                                                                              \
    PLAYS("copy up on 0", up(0))                                                                   \
    PLAYS("copy up on 1", up(1))                                                                   \
    PLAYS("copy down on 0", down(0))                                                               \
    PLAYS("copy down on 1", down(1))                                                               \
    PLAYS("synchronise 0", PROGRAM_USES(0, impl_mgpuStreamSynchronize(handle)))                    \
    PLAYS("0 leaves", leave(0))                                                                    \
    PLAYS("give back", (void)trim_staging(ALL_DEVICES))                                            \
    PLAYS("forget", forget())

static void check(void) {
    const struct staging *staging = &all[0];
    model_check_numbers();
    explore_require(staging->used <= STAGING_BYTES, "no more is used than there is");
    if (!staging->memory || staging->taken)
        return;
    for (unsigned i = 0; i < MOST_STREAMS; i++)
        if (model_reads(i, staging->memory))
            explore_require(staging->owner && stream_handle(staging->owner) == model_stream(i),
                            "what the device reads has its owner until it is done");
}

static void check_between(void) {
    explore_require(!all[0].taken, "nobody has it taken");
}

/* The program owns both streams, and a copy on stream 1 is pending. */
static void set_up(bool exclusive) {
    model_start(2, exclusive);
    for (unsigned i = 0; i < 2; i++) {
        world.held[i] = (struct held){.state = IS_HELD, .handle = model_stream(i)};
        blocks[i] = impl_mgpuMemAlloc(BYTES, model_stream(i), false);
    }
    unsigned char from[BYTES] = {0};
    impl_mgpuMemcpy(blocks[1], from, BYTES, model_stream(1));
}

SCENARIO(staging, "staging", false, set_up, COPIES);
