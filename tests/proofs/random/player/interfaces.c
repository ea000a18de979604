/* Steps of the library's other interfaces: functions as `mgpu-rt lower --graph` writes them,
 * overrides, and both signatures of mgpuEventElapsedTime. */
#include "steps.h"

#include <dlfcn.h>

struct mgpu_rt_graph_function {
    const char *name;
    void *state;
};
enum { REPLAYED, PLAINLY, BUILDING };

int mgpu_rt_graph_enter(struct mgpu_rt_graph_function *, const void *arguments, size_t)
    __attribute__((weak));
int mgpu_rt_graph_leave(struct mgpu_rt_graph_function *) __attribute__((weak));
int mgpu_rt_intercept(const char *name, void (*instead)(void)) __attribute__((weak));
void (*mgpu_rt_native(const char *name))(void) __attribute__((weak));

/* ---- functions as `mgpu-rt lower --graph` writes them ---- */

struct call {
    void *image, *host;
    int64_t image_bytes, count, k, inner;
};

static struct mgpu_rt_graph_function lowered[] = {{"first", NULL}, {"second", NULL}};

/* Copies words to the device, mixes them there with a kernel, and copies them back; creates all
 * objects, waits for them and destroys them. */
static void run_lowered(const struct step *step, const struct call *call);

static void call_lowered(const struct step *step, struct mgpu_rt_graph_function *function,
                         const struct call *call) {
    const int way = mgpu_rt_graph_enter(function, call, sizeof *call);
    if (way == REPLAYED)
        return;
    run_lowered(step, call);
    if (way == BUILDING && mgpu_rt_graph_leave(function) != 0)
        run_lowered(step, call);
}

static void run_lowered(const struct step *step, const struct call *call) {
    const size_t bytes = 4 * (size_t)call->count;
    if (call->inner) {
        struct call within = *call;
        within.inner = 0;
        for (int i = 0; i < call->inner; ++i)
            call_lowered(step, &lowered[1], &within);
        return;
    }
    void *stream = mgpuStreamCreate();
    void *module = mgpuModuleLoad(call->image, (size_t)call->image_bytes);
    void *function = mgpuModuleGetFunction(module, "mix");
    void *block = mgpuMemAlloc(bytes, stream, false);
    mgpuMemcpy(block, call->host, bytes, stream);
    mgpuStreamSynchronize(stream);
    launch_mix(step, function, stream, block, call->count, call->k);
    mgpuStreamSynchronize(stream);
    mgpuMemcpy(call->host, block, bytes, stream);
    mgpuMemFree(block, stream);
    mgpuStreamSynchronize(stream);
    mgpuStreamDestroy(stream);
    mgpuModuleUnload(module);
}

/* call IMAGE HOST COUNT K INNER: calls the second function; if INNER is not 0, calls the first
 * function. The first function calls the second function INNER times */
static void play_call(const struct step *step) {
    size_t bytes;
    const void *image = image_content((int)ARGUMENT(0), &bytes);
    const struct call call = {
        (void *)(uintptr_t)image, BUFFER(1), (int64_t)bytes, ARGUMENT(2), ARGUMENT(3), ARGUMENT(4)};
    call_lowered(step, &lowered[ARGUMENT(4) == 0], &call);
}

/* ---- overrides ---- */

static const char *const overridable[] = {"mgpuStreamCreate", "mgpuStreamDestroy",
                                          "mgpuEventCreate", NULL};
static int override_calls;

static void *create_stream_instead(void) {
    ++override_calls;
    return ((void *(*)(void))mgpu_rt_native(overridable[0]))();
}

static void destroy_stream_instead(void *stream) {
    ++override_calls;
    ((void (*)(void *))mgpu_rt_native(overridable[1]))(stream);
}

static void *create_event_instead(void) {
    ++override_calls;
    return ((void *(*)(void))mgpu_rt_native(overridable[2]))();
}

/* override FUNCTION ON: installs an override of the function, or removes the override if ON is 0;
 * FUNCTION 3 does not exist */
static void play_override(const struct step *step) {
    void (*const instead[])(void) = {(void (*)(void))create_stream_instead,
                                     (void (*)(void))destroy_stream_instead,
                                     (void (*)(void))create_event_instead, NULL};
    override_calls = 0;
    say(step, "%d",
        mgpu_rt_intercept(overridable[ARGUMENT(0)],
                          ARGUMENT(1) != 0 ? instead[ARGUMENT(0)] : NULL));
}

/* overridden: prints how many calls the override has got */
static void play_overridden(const struct step *step) {
    say(step, "%d calls", override_calls);
}

/* ---- the time between events ---- */

typedef struct elapsed {
    float milliseconds;
    int64_t error;
} elapsed_function(void *, void *, void *);

enum clock { CLOCK_FOUND, CLOCK_IMPORTED, CLOCK_OWN, CLOCK_WRAPPED };

/* Finds the function mgpuEventElapsedTime that this call uses. A JIT finds the function by its
 * name, and a library may import the function. A library may also define its own function of this
 * name, which calls HIP's function or the runtime's function. LLVM's own library lacks the
 * function. */
static elapsed_function *clock_of(enum clock clock) {
    static const char name[] = "mgpuEventElapsedTime", runtime[] = "libmlir_rocm_runtime.so";
    elapsed_function *found;
    if (clock == CLOCK_IMPORTED) { /* the step has opened the library */
        *(void **)&found = dlsym(library_open("importer"), "imported_timer");
        return found;
    }
    void *library = clock == CLOCK_FOUND ? RTLD_DEFAULT : library_open("timer");
    if (clock != CLOCK_FOUND)
        *(void **)dlsym(library, "timer_calls") =
            clock == CLOCK_OWN ? foreign_symbol("hipEventElapsedTime")
                               : dlsym(dlopen(runtime, RTLD_NOW | RTLD_NOLOAD), name);
    *(void **)&found = dlsym(library, name);
    if (clock == CLOCK_FOUND && found)
        (void)found(NULL, NULL, NULL); /* after this call, new events have timing */
    return found;
}

/* elapsed HOW STREAM CLOCK: calls mgpuEventElapsedTime with one of its signatures; if HOW is 2 or
 * 3, the first handle is invalid */
static void play_elapsed(const struct step *step) {
    struct elapsed found = {0};
    void *const wild = (void *)(uintptr_t)0xDEAD0000;
    elapsed_function *ask = clock_of((enum clock)ARGUMENT(2));
    void *start = mgpuEventCreate(), *stop = mgpuEventCreate();
    mgpuEventRecord(start, STREAM(1));
    mgpuEventRecord(stop, STREAM(1));
    mgpuEventSynchronize(stop);
    if (ask && ARGUMENT(0) % 2 == 0)
        found = ask(ARGUMENT(0) == 0 ? start : wild, ARGUMENT(0) == 0 ? stop : start, STREAM(1));
    else if (ask)
        found.error = ask(&found.milliseconds, ARGUMENT(0) == 1 ? start : wild, stop).error;
    say(step, (int)found.error == 0 && found.milliseconds >= 0 ? "a time" : "no time");
    mgpuEventDestroy(start);
    mgpuEventDestroy(stop);
}

/* ---- the steps ---- */

const struct step_kind interface_steps[] = {
    {"call", play_call},
    {"override", play_override},
    {"overridden", play_overridden},
    {"elapsed", play_elapsed},
    {NULL, NULL},
};
