/* HIP reports who calls it, and other code calls HIP at each step of the library's hits. The
 * program owns no stream and no module. One idle stream and one idle module are cached. */
#include "driver/witness.c"

#include "program.h"

#include "modules/modules.h"
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
    struct held *held = program_ends(object);
    impl_mgpuStreamDestroy(held->handle);
    program_has_ended(held);
}

static void serve_other_code(unsigned object) {
    struct held *held = create(object);
    model_other_code_launches(model_number(held->handle), NULL);
    destroy(object);
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

enum operation { CREATE, CREATE_AGAIN, SERVE, SERVE_UNHEARD, REPLACE, CALL, STREAM_OPERATIONS };
static const char *const names[] = {
    "create 0",
    "create 0, destroy it, create 0",
    "create 1, other code works on it, destroy 1",
    "a profiler starts, and the same",
    "create 1, other code replaces it by its own stream, destroy that",
    "other code allocates",
};

static void play(unsigned operation) {
    switch (operation) {
    case CREATE_AGAIN:
        (void)create(0);
        destroy(0);
        (void)create(0);
        break;
    case CREATE:
        (void)create(0);
        break;
    case SERVE_UNHEARD:
        profiler_starts();
        serve_other_code(1);
        break;
    case SERVE:
        serve_other_code(1);
        break;
    case REPLACE:
        replace(1);
        break;
    default:
        model_other_code_allocates();
    }
}

static void check(void) {
    model_check_numbers();
}

static void check_between(void) {}

static void set_up(bool exclusive) {
    model_start(0, exclusive);
    program_reports();
    impl_mgpuStreamDestroy(impl_mgpuStreamCreate());
    stream_cache.thread_ends(thread_get());
    thread_get()->stream = NULL;
}

/* ---- modules, whose constants other code may set ---- */

static struct held *load(unsigned object) {
    struct held *held = program_asks(object);
    const hipModule_t made = impl_mgpuModuleLoad(model_images[0], IMAGE_BYTES);
    explore_require(!world.modules[model_module(made)].set,
                    "a module was handed out whose constants other code has set");
    program_has(held, made);
    return held;
}

static void unload(unsigned object) {
    struct held *held = program_ends(object);
    impl_mgpuModuleUnload(held->handle);
    program_has_ended(held);
}

static void set_constant(unsigned object) {
    model_other_code_sets(load(object)->handle);
    unload(object);
}

enum module_operation { LOAD, SET, SET_UNHEARD, CALL_HIP, MODULE_OPERATIONS };
static const char *const module_names[] = {
    "load 0",
    "load 1, other code sets its constant, unload 1",
    "a profiler starts, and the same",
    "other code allocates",
};

static void play_modules(unsigned operation) {
    switch (operation) {
    case LOAD:
        (void)load(0);
        break;
    case SET_UNHEARD:
        profiler_starts();
        set_constant(1);
        break;
    case SET:
        set_constant(1);
        break;
    default:
        model_other_code_allocates();
    }
}

static void set_up_modules(bool exclusive) {
    model_start(0, exclusive);
    program_reports();
    model_has_constants = true;
    const hipModule_t made = impl_mgpuModuleLoad(model_images[0], IMAGE_BYTES);
    (void)impl_mgpuModuleGetFunction(made, "kernel");
    impl_mgpuModuleUnload(made);
}

const struct scenario explore_streams_reported =
    SCENARIO("streams-reported", true, STREAM_OPERATIONS, set_up, play, names);
const struct scenario explore_modules_reported = SCENARIO(
    "modules-reported", true, MODULE_OPERATIONS, set_up_modules, play_modules, module_names);
