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
    struct held *held = program_ends(object);
    impl_mgpuStreamDestroy(held->handle);
    program_has_ended(held);
}

static void launch(unsigned object) {
    struct held *held = program_use(object);
    program_launch(held->handle);
    held->users--;
}

static void synchronize(unsigned object) {
    struct held *held = program_use(object);
    impl_mgpuStreamSynchronize(held->handle);
    held->users--;
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

static bool program_holds(const struct stream *stream) {
    for (unsigned i = 0; i < MOST_OBJECTS; i++)
        if (world.held[i].state == IS_HELD && world.held[i].handle == stream->handle.key)
            return true;
    return false;
}

enum operation {
    CREATE_0,
    CREATE_1,
    DESTROY_0,
    DESTROY_1,
    LAUNCH,
    SYNC_0,
    LEND,
    GIVE_BACK,
    GIVE_BACK_AT_EXIT,
    QUIET,
    EVICT,
    THREAD_ENDS,
    FORGET,
    OPERATIONS
};
static const char *const names[] = {"create 0",
                                    "create 1",
                                    "destroy 0",
                                    "destroy 1",
                                    "launch on 1, or 0",
                                    "synchronise 0",
                                    "use an external stream",
                                    "give back",
                                    "give back at exit",
                                    "ask whether all is quiet",
                                    "evict",
                                    "thread ends",
                                    "forget"};

static void play(unsigned operation) {
    switch (operation) {
    case CREATE_0:
    case CREATE_1:
        create(operation - CREATE_0);
        break;
    case DESTROY_0:
    case DESTROY_1:
        destroy(operation - DESTROY_0);
        break;
    case LAUNCH:
        launch(world.held[1].state == IS_HELD);
        break;
    case SYNC_0:
        synchronize(0);
        break;
    case LEND:
        use_external();
        break;
    case GIVE_BACK:
        trim_streams(ALL_DEVICES);
        break;
    case GIVE_BACK_AT_EXIT:
        world.exits = true;
        stream_trim_at_exit();
        break;
    case QUIET:
        (void)stream_all_quiet();
        break;
    case EVICT:
        (void)evict_stream(model_stream(1));
        break;
    case THREAD_ENDS:
        release_of_thread(thread_get());
        break;
    default:
        if (exclusive_hip())
            explore_prune(); /* threads do not reset a device in this scenario */
        forget();
    }
}

/* ---- a reset, which the program makes between its calls ---- */

enum reset_operation { NEW_0, NEW_1, END_0, RESET, LOOK, TAKE_OUT, RESET_OPERATIONS };
static const char *const reset_names[] = {"create 0",
                                          "create 1",
                                          "launch on 0 and destroy it",
                                          "reset",
                                          "the library looks whether all is quiet",
                                          "the library evicts one"};

static void play_reset(unsigned operation) {
    switch (operation) {
    case NEW_0:
    case NEW_1:
        create(operation - NEW_0);
        break;
    case END_0:
        launch(0);
        destroy(0);
        break;
    case RESET:
        program_reset();
        break;
    default:
        program_hand(true);
        if (operation == LOOK)
            (void)stream_all_quiet();
        else
            (void)evict_stream(model_stream(1));
        program_hand(false);
    }
}

/* ---- a stream that HIP has made anew on another device ---- */

enum moved_operation {
    SERVE_ELSEWHERE,
    SERVE_AND_END,
    SERVE_TAKEN,
    SERVE_HERE,
    RETURN_ALL,
    MOVED_OPERATIONS
};
static const char *const moved_names[] = {
    "create the one anew on another device, and destroy it", "the same, and the thread ends",
    "create the other one anew while a thread has taken it", "create 1", "give back"};

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

static void play_moved(unsigned operation) {
    switch (operation) {
    case SERVE_ELSEWHERE:
        serve_elsewhere();
        break;
    case SERVE_AND_END:
        serve_elsewhere();
        release_of_thread(thread_get());
        store_relaxed(&thread_get()->stream, NULL);
        break;
    case SERVE_TAKEN:
        serve_taken();
        break;
    case SERVE_HERE:
        create(1);
        explore_require(stream_known(world.held[1].handle)->device == 0,
                        "a stream of another device is handed out");
        break;
    default:
        trim_streams(ALL_DEVICES);
    }
}

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
        explore_require(program_holds(one) == (state == STREAM_LIVE) ||
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

const struct scenario explore_streams = SCENARIO("streams", false, OPERATIONS, set_up, play, names);
const struct scenario explore_streams_asked =
    SCENARIO("streams-asked", true, OPERATIONS, set_up, play, names);
const struct scenario explore_streams_reset =
    SCENARIO("streams-reset", true, RESET_OPERATIONS, set_up_reset, play_reset, reset_names);

const struct scenario explore_streams_moved =
    SCENARIO("streams-moved", false, MOVED_OPERATIONS, set_up_moved, play_moved, moved_names);
