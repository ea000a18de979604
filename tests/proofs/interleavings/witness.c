/* HIP reports who calls it, and other code calls HIP at each step of the library's hits. The
 * program owns no stream. One idle stream is cached. */
#include "driver/witness.c"

#include "program.h"

#include "shared/caches.h"
#include "streams/streams_pool.h"

void program_reports(void) {
    explore_own(&own, sizeof own);
    model_report_calls();
    witness_open(&model_reports);
    witness_install();
}

/* A profiler replaces the library's function. */
static void profiler_starts(void) {
    explore_point();
    world.hear = NULL;
}

/* ---- streams ---- */

static struct held *create(unsigned object) {
    struct held *held = program_asks(object);
    const hipStream_t made = impl_mgpuStreamCreate();
    explore_require(world.streams[model_number(made)].alive &&
                        world.streams[model_number(made)].flags == 0,
                    "a stream was handed out that the library has not created");
    explore_require(model_is_done(model_number(made)), "new work queues behind other code's");
    program_has(held, made);
    return held;
}

static void destroy(unsigned object) {
    PROGRAM_ENDS(object, impl_mgpuStreamDestroy(handle));
}

static void serve_other_code(unsigned object) {
    struct held *held = create(object);
    model_other_code_launches(model_number(held->handle), NULL);
    destroy(object);
}

/* Puts the thread's last stream into the queue, where other threads find it. */
static void end_thread(void) {
    stream_cache.thread_ends(thread_get());
    thread_get()->stream = NULL;
}

static void serve_and_end(unsigned object) {
    serve_other_code(object);
    end_thread();
}

static void replace(unsigned object) {
    struct held *held = create(object);
    const hipStream_t ours = held->handle;
    held->handle = NULL;
    model_other_code_destroys(ours);
    held->handle = model_other_code_creates();
    const unsigned made = model_number(held->handle);
    destroy(object);
    explore_require(!world.streams[made].alive || world.streams[made].flags == 0,
                    "a stream of other code stays cached");
}

static void serve_unheard(void) {
    profiler_starts();
    serve_other_code(1);
}

static void create_again(void) {
    (void)create(0);
    destroy(0);
    (void)create(0);
}

#define STREAMS(PLAYS)                                                                             \
    PLAYS("create 0", (void)create(0))                                                             \
    PLAYS("create 0, destroy it, create 0", create_again())                                        \
    PLAYS("create 1, other code works on it, destroy 1", serve_other_code(1))                      \
    PLAYS("a profiler starts, and the same", serve_unheard())                                      \
    PLAYS("create 1, other code works on it, destroy 1, end the thread", serve_and_end(1))         \
    PLAYS("create 1, other code replaces it by its own stream, destroy that", replace(1))          \
    PLAYS("other code allocates", model_other_code_allocates())

static void check(void) {
    model_check_numbers();
}

static void check_between(void) {}

static void set_up(bool exclusive) {
    model_start(0, exclusive);
    program_reports_by_word();
    impl_mgpuStreamDestroy(impl_mgpuStreamCreate());
    end_thread();
}

/* With the user's word, the library makes no probe, and nobody may take the reports. */
#define STREAMS_WORD(PLAYS)                                                                        \
    PLAYS("create 0", (void)create(0))                                                             \
    PLAYS("create 0, destroy it, create 0", create_again())                                        \
    PLAYS("create 1, other code works on it, destroy 1", serve_other_code(1))                      \
    PLAYS("create 1, other code works on it, destroy 1, end the thread", serve_and_end(1))         \
    PLAYS("create 1, other code replaces it by its own stream, destroy that", replace(1))          \
    PLAYS("other code allocates", model_other_code_allocates())

SCENARIO(streams_reported, "streams-reported", true, set_up, STREAMS);
SCENARIO(streams_word, "streams-word", false, set_up, STREAMS_WORD);
