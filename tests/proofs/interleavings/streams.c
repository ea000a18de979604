/* The program's two streams, an external stream, and one stream for each place in the caches. */
#include "streams/streams_pool.c"

#include "program.h"

/* The stream that the program created directly with HIP. This stream has the highest number. */
enum { OWN = MOST_STREAMS - 1 };

static void create(unsigned object) {
    struct held *held = program_asks(object);
    const hipStream_t made = impl_mgpuStreamCreate();
    explore_require(world.streams[model_number(made)].alive,
                    "a stream was handed out that HIP has not");
    explore_require(model_is_done(model_number(made)), "new work queues behind another owner's");
    program_has(held, made);
}

static void destroy(unsigned object) {
    PROGRAM_ENDS(object, impl_mgpuStreamDestroy(handle));
}

static void launch(unsigned object) {
    PROGRAM_USES(object, program_launch(handle));
}

static void use_external(void) {
    struct thread *thread = thread_get();
    explore_require(stream_use_external(thread, model_stream(OWN)),
                    "a thread has an external stream");
    explore_require(impl_mgpuStreamCreate() == model_stream(OWN), "the external stream serves");
    stream_end_external(thread);
}

static void forget(void) {
    bool all_gone = true;
    program_forgets();
    const unsigned lone = explore_lone();
    caches_end(0);
    invalidate_streams(ALL_DEVICES);
    for (struct stream *one = stream_first(); one; one = stream_next(one))
        all_gone &= one->state == STREAM_GONE || one->state == STREAM_EXTERNAL;
    program_require_gone(all_gone, lone);
}

static void trim_at_exit(void) {
    world.exits = true;
    stream_trim_at_exit();
}

static void forget_unless_exclusive(void) {
    if (exclusive_hip())
        explore_prune(); /* threads do not reset a device in this scenario */
    forget();
}

#define STREAMS(PLAYS)                                                                             \
    PLAYS("create 0", create(0))                                                                   \
    PLAYS("create 1", create(1))                                                                   \
    PLAYS("destroy 0", destroy(0))                                                                 \
    PLAYS("destroy 1", destroy(1))                                                                 \
    PLAYS("launch on 1, or 0", launch(world.held[1].state == IS_HELD))                             \
    PLAYS("synchronise 0", PROGRAM_USES(0, impl_mgpuStreamSynchronize(handle)))                    \
    PLAYS("use an external stream", use_external())                                                \
    PLAYS("give back", trim_streams(ALL_DEVICES))                                                  \
    PLAYS("give back at exit", trim_at_exit())                                                     \
    PLAYS("ask whether all is quiet", (void)stream_all_quiet())                                    \
    PLAYS("evict", (void)evict_stream(model_stream(1)))                                            \
    PLAYS("thread ends", release_of_thread(thread_get()))                                          \
    PLAYS("forget", forget_unless_exclusive())

/* ---- a reset, which the program makes between its calls ---- */

static void launch_and_destroy(unsigned object) {
    launch(object);
    destroy(object);
}

static void look(void) {
    program_hand(true);
    (void)stream_all_quiet();
    program_hand(false);
}

static void take_out(void) {
    program_hand(true);
    (void)evict_stream(model_stream(1));
    program_hand(false);
}

#define STREAMS_OF_A_RESET(PLAYS)                                                                  \
    PLAYS("create 0", create(0))                                                                   \
    PLAYS("create 1", create(1))                                                                   \
    PLAYS("launch on 0 and destroy it", launch_and_destroy(0))                                     \
    PLAYS("reset", program_reset())                                                                \
    PLAYS("the library looks whether all is quiet", look())                                        \
    PLAYS("the library evicts one", take_out())

/* ---- a stream that HIP has made anew on another device ---- */

/* Creates and destroys stream 1, as if the current device of the calling thread were 1. A run
 * contains this operation only once. */
static void serve_elsewhere(void) {
    struct held *held = program_hold(0, NOT_HELD);
    const hipStream_t handle = model_stream(1); /* the stream that HIP created second */
    held->state = IS_MADE;
    struct stream *stream = stream_insert(handle, 1);
    struct stream *before = thread_get()->stream;
    store_relaxed(&thread_get()->stream, stream);
    leave_to_others(before);
    add_fetch_relaxed(&stream_pool_total, 1);
    held->state = IS_ENDED; /* for good */
    impl_mgpuStreamDestroy(handle);
}

/* HIP creates the idle stream anew on another device, while a thread has taken the old stream. */
static void serve_taken(void) {
    struct stream *stream = stream_known(model_stream(0));
    if (!stream || !take_stream(stream, STREAM_IDLE))
        explore_prune();
    explore_require(!stream_insert(model_stream(0), 1), "a taken entry serves a new stream");
    put_in_queue(&idle, stream);
}

static void serve_and_end(void) {
    serve_elsewhere();
    release_of_thread(thread_get());
    store_relaxed(&thread_get()->stream, NULL);
}

static void serve_here(unsigned object) {
    create(object);
    explore_require(stream_known(world.held[object].handle)->device == 0,
                    "a stream of another device is handed out");
}

#define MOVED_STREAMS(PLAYS)                                                                       \
    PLAYS("create the one anew on another device, and destroy it", serve_elsewhere())              \
    PLAYS("the same, and the thread ends", serve_and_end())                                        \
    PLAYS("create the other one anew while a thread has taken it", serve_taken())                  \
    PLAYS("create 1", serve_here(1))                                                               \
    PLAYS("give back", trim_streams(ALL_DEVICES))

static bool is_in(const struct queue *queue, const struct stream *stream) {
    const struct queued *one = queue->oldest;
    while (one && one != &stream->queued)
        one = one->newer;
    return one != NULL;
}

static size_t length(const struct queue *queue) {
    size_t count = 0;
    for (const struct queued *one = queue->oldest; one; one = one->newer)
        count++;
    return count;
}

static bool in_slots(const struct stream *stream) {
    for (const struct thread *thread = thread_list; thread; thread = thread->next)
        if (thread->stream == stream)
            return true;
    return false;
}

static bool is_chosen(const struct stream *stream) {
    for (const struct thread *thread = thread_list; thread; thread = thread->next)
        if (thread->external == stream)
            return true;
    return false;
}

static void check(void) {
    model_check_numbers();
    if (!explore_held(&tables_lock)) {
        explore_require(queued == length(&idle) + length(&retired), "`queued` counts the queues");
        for (struct stream *one = stream_first(); one; one = stream_next(one)) {
            explore_require(is_in(&idle, one) == (one->queued.queue == &idle) &&
                                is_in(&retired, one) == (one->queued.queue == &retired),
                            "a stream lies in its queue, and in no other");
            explore_require(one->external_users == 0 || one->state != STREAM_GONE,
                            "what threads use is not gone");
        }
    }
}

static void check_between(void) {
    size_t known = 0;
    if (program_reset_is_unseen())
        return;
    for (struct stream *one = handle_first(&stream_map); one; one = handle_next(one)) {
        const int state = one->state;
        const bool alive = world.streams[model_number(stream_handle(one))].alive;
        known += !stream_is_gone(one) && state != STREAM_EXTERNAL;
        explore_require(state != STREAM_TAKEN, "nothing stays in hand");
        explore_require(program_holds(one->handle.key) == (state == STREAM_LIVE) ||
                            (state == STREAM_GONE &&
                             (world.forgot || world.hand_between || !device_has_caches(0))) ||
                            world.exits,
                        "the program holds it if and only if its state says so");
        explore_require((one->external_users > 0) == is_chosen(one), "external_users are counted");
        explore_require(state != STREAM_EXTERNAL || one->external_users,
                        "what is external is used");
        explore_require(state == STREAM_GONE || alive, "what is kept is HIP's");
        explore_require(state != STREAM_GONE || !alive || world.forgot || world.hand_between ||
                            !device_has_caches(0) || model_number(stream_handle(one)) == OWN,
                        "HIP has back what is gone");
        explore_require(state == STREAM_IDLE      ? one->queued.queue || in_slots(one)
                        : state == STREAM_RETIRED ? one->queued.queue || world.exits
                                                  : true,
                        "who looks for a stream can find it");
        explore_require(state != STREAM_IDLE || !exclusive_hip() || stream_is_idle(one),
                        "a free stream is idle");
    }
    explore_require(known == stream_pool_total, "the total counts all that are kept");
}

/* The program owns object 0, a stream for which a block waits. A queue contains a second stream,
 * which is idle or busy. */
static void set_up(bool exclusive) {
    model_start(1, exclusive);
    model_own_stream(OWN);
    cache_limits.streams = 2;
    world.held[0] = (struct held){.state = IS_HELD, .handle = model_stream(0)};
    stream_first()->has_blocks = true;
    const hipStream_t other = impl_mgpuStreamCreate();
    if (!exclusive)
        program_launch(other);
    impl_mgpuStreamDestroy(other);
    release_of_thread(thread_get());
}

/* The program owns no stream. A queue contains a busy stream and an idle stream. */
static void set_up_reset(bool exclusive) {
    static const struct cache *const caches[] = {&reset_cache, &stream_cache, NULL};
    caches_set(caches);
    model_start(0, exclusive);
    const hipStream_t busy = impl_mgpuStreamCreate(), idle_one = impl_mgpuStreamCreate();
    program_launch(busy);
    impl_mgpuStreamDestroy(busy);
    impl_mgpuStreamDestroy(idle_one);
    release_of_thread(thread_get());
}

/* The program owns no stream. The queue contains two streams; a reset has destroyed the newer
 * stream. */
static void set_up_moved(bool exclusive) {
    model_start(0, exclusive);
    const hipStream_t first = impl_mgpuStreamCreate(), second = impl_mgpuStreamCreate();
    impl_mgpuStreamDestroy(first);
    impl_mgpuStreamDestroy(second);
    release_of_thread(thread_get());
    thread_get()->stream = NULL;
    stream_invalidate(stream_known(second));
    world.forgot = true;
}

SCENARIO(streams, "streams", false, set_up, STREAMS);
SCENARIO(streams_asked, "streams-asked", true, set_up, STREAMS);
SCENARIO(streams_reset, "streams-reset", true, set_up_reset, STREAMS_OF_A_RESET);
SCENARIO(streams_moved, "streams-moved", false, set_up_moved, MOVED_STREAMS);
