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
    PROGRAM_ENDS(object, impl_mgpuStreamDestroy(handle));
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
    PROGRAM_ENDS(object, impl_mgpuModuleUnload(handle));
}

static void set_constant(unsigned object) {
    model_other_code_sets(load(object)->handle);
    unload(object);
}

static void set_unheard(void) {
    profiler_starts();
    set_constant(1);
}

#define MODULES(PLAYS)                                                                             \
    PLAYS("load 0", (void)load(0))                                                                 \
    PLAYS("load 1, other code sets its constant, unload 1", set_constant(1))                       \
    PLAYS("a profiler starts, and the same", set_unheard())                                        \
    PLAYS("other code allocates", model_other_code_allocates())

static void set_up_modules(bool exclusive) {
    model_start(0, exclusive);
    program_reports_by_word();
    model_has_constants = true;
    const hipModule_t made = impl_mgpuModuleLoad(model_images[0], IMAGE_BYTES);
    (void)impl_mgpuModuleGetFunction(made, "kernel");
    impl_mgpuModuleUnload(made);
}

/* With the user's word, the library makes no probe, and nobody may take the reports. */
#define STREAMS_WORD(PLAYS)                                                                        \
    PLAYS("create 0", (void)create(0))                                                             \
    PLAYS("create 0, destroy it, create 0", create_again())                                        \
    PLAYS("create 1, other code works on it, destroy 1", serve_other_code(1))                      \
    PLAYS("create 1, other code replaces it by its own stream, destroy that", replace(1))          \
    PLAYS("other code allocates", model_other_code_allocates())
#define MODULES_WORD(PLAYS)                                                                        \
    PLAYS("load 0", (void)load(0))                                                                 \
    PLAYS("load 0, unload it, load 0", load_again())                                               \
    PLAYS("load 1, other code sets its constant, unload 1", set_constant(1))                       \
    PLAYS("other code allocates", model_other_code_allocates())

static void load_again(void) {
    (void)load(0);
    unload(0);
    (void)load(0);
}

SCENARIO(streams_reported, "streams-reported", true, set_up, STREAMS);
SCENARIO(modules_reported, "modules-reported", true, set_up_modules, MODULES);
SCENARIO(streams_word, "streams-word", false, set_up, STREAMS_WORD);
SCENARIO(modules_word, "modules-word", false, set_up_modules, MODULES_WORD);
