#include "abi/override.h"
#include "abi/exclusive_end.h"
#include "abi/python_plugin.h"
#include "driver/exclusive.h"
#include "graphs/build.h"
#include "graphs/graphs.h"
#include "streams/streams.h"
#include "telemetry/counters.h"

#include <string.h>

__thread bool override_inside __attribute__((tls_model("initial-exec")));

static pthread_mutex_t overrides_lock = PTHREAD_MUTEX_INITIALIZER;
static mgpu_rt_function overrides[ABI_COUNT], at_end;

int override_index(const char *name) {
    int index = 0;
    if (!name)
        return ABI_COUNT;
    while (index < ABI_COUNT && strcmp(abi_names[index], name) != 0)
        index++;
    return index;
}

/* ---- the user's functions ---- */

static uint32_t override_count; /* written under overrides_lock, or by answer_alone */
static uint32_t awaited; /* MGPU_RT_RUNTIME is set, and the runtime in Python was not created yet */
static uint32_t word_is_ending; /* until all that rests on the user's word is settled */

static bool any_override(void) {
    return load_acquire(&override_count) != 0;
}

/* An override may call HIP itself, even on the library's objects. Each call beside an override
 * settles what rests on the word until one of these calls has settled everything. */
static void end_word_unless_heard(void) {
    const bool stands = exclusive_hip() && PROOF(override_is_heard, witness_hears_overrides());
    if (stands)
        return;
    PROOF_STEP(override_waits_for_the_words_end, store_release(&word_is_ending, 1));
    if (exclusive_end())
        store_release(&word_is_ending, 0);
}

static __attribute__((noinline)) void check_word_slowly(void) {
    if (load_acquire(&awaited) || any_override())
        end_word_unless_heard();
}

static inline void check_word(void) {
    if (exclusive_hip() || UNLIKELY(load_acquire(&word_is_ending)))
        check_word_slowly();
}

static void set_override(mgpu_rt_function *place, mgpu_rt_function instead) {
    pthread_mutex_lock(&overrides_lock);
    if (place != &at_end)
        store_release(&override_count, override_count + (instead != NULL) - (*place != NULL));
    store_release(place, instead);
    if (instead)
        fetch_or_release(&runtime_mode, MODE_OVERRIDE);
    else if (!any_override() && !at_end)
        fetch_and_release(&runtime_mode, ~(unsigned)MODE_OVERRIDE);
    pthread_mutex_unlock(&overrides_lock);
}

/* Ends the word before another thread can call the override, and checks it again afterwards: a
 * profiler may take the reports in between. */
int mgpu_rt_intercept(const char *name, mgpu_rt_function instead) {
    const int index = override_index(name);
    const bool end = name && strcmp(name, "end") == 0;
    if (index == ABI_COUNT && !end)
        return -1;
    if (instead && !end && exclusive_hip())
        PROOF_STEP(override_comes_after_the_word, end_word_unless_heard());
    set_override(end ? &at_end : &overrides[index], instead);
    check_word();
    return 0;
}

/* ---- a runtime in Python ---- */

static bool begun;
static pthread_mutex_t host_lock = PTHREAD_MUTEX_INITIALIZER;

/* The first calls of all threads wait for the runtime in Python, so that no call bypasses the
 * runtime. A thread releases the GIL before it waits, because the thread that starts Python may
 * need the GIL. A module that Python imports for the override may call mgpu* functions. Returns
 * false if the thread has too little stack for Python, and so bypasses the runtime. */
static __attribute__((noinline)) bool host(void) {
    void *const gil = python_get()->let_go();
    bool created = true;
    pthread_mutex_lock(&host_lock);
    python_get()->take_back(gil);
    if (load_acquire(&awaited)) {
        begun = true;
        override_inside = true;
        created = python_get()->create(options.runtime);
        override_inside = false;
        if (created)
            store_release(&awaited, 0);
        begun = created;
    }
    pthread_mutex_unlock(&host_lock);
    return created;
}

/* Returns false if calls of this thread bypass all overrides. Checks the user's word in each call,
 * because each call may rely on it, and because a profiler may take the reports. */
static inline bool asks_overrides(void) {
    check_word();
    return !override_inside && (LIKELY(!load_acquire(&awaited)) || host());
}

bool override_present(void) {
    if (!runtime_is(MODE_OVERRIDE))
        return false;
    (void)asks_overrides(); /* creates the runtime of MGPU_RT_RUNTIME */
    return any_override();
}

/* ---- the order ---- */

static struct advice not_asked = {
    .text =
        "stream %p is being captured: until the capture ends, no hook or runtime in Python gets "
        "calls of this thread (--hook, mgpu_rt.intercept, mgpu-rt check or diff)"};

/* Marks the graph as failed if an override is set. An override in Python may call HIP itself, or
 * copy device memory into a buffer that Python frees later. A graph cannot contain such work. */
static mgpu_rt_function built(enum abi_index function) {
    if (DOUBT(override_belongs_in_no_graph, !override_inside && override_present()))
        graph_fail("a hook or runtime in Python answers its calls (--hook, "
                   "mgpu_rt.intercept, mgpu-rt check or diff)");
    return graph_call(function);
}

static void destroy_unless_external(hipStream_t handle) {
    void (*const override)(hipStream_t) =
        (void (*)(hipStream_t))load_acquire(&overrides[ABI_mgpuStreamDestroy]);
    const struct stream *stream = handle ? stream_find(thread_get(), handle) : NULL;
    if (override && !(stream && DOUBT(external_stream_is_destroyed_by_the_caller,
                                      load_relaxed(&stream->external_users))))
        override(handle);
    else
        impl_mgpuStreamDestroy(handle);
}

/* Returns NULL if the library itself must answer the call, because of the thread's external stream.
 * Otherwise returns the override, or destroy_unless_external for mgpuStreamDestroy. */
static mgpu_rt_function beside_external(enum abi_index function, mgpu_rt_function override) {
    const struct stream *external = thread_get()->external;
    if (DOUBT(override_belongs_in_no_capture, capture_on_thread())) {
        report_once(&not_asked, (void *)stream_handle(external));
        return NULL;
    }
    if (function == ABI_mgpuStreamDestroy)
        return (mgpu_rt_function)destroy_unless_external;
    return DOUBT(external_stream_is_asked_for, external && function == ABI_mgpuStreamCreate)
               ? NULL
               : override;
}

mgpu_rt_function override_find(enum abi_index function) {
    if (graph_building)
        return built(function);
    const bool external = runtime_is(MODE_EXTERNAL);
    mgpu_rt_function override = NULL;
    if (runtime_is(MODE_OVERRIDE) && asks_overrides())
        override = load_acquire(&overrides[function]);
    if (override && external)
        override = beside_external(function, override);
    if (override) {
        call_now.overridden = true;
        call_now.native = false; /* the creation of a runtime in Python may have set this flag */
    }
    return override || !external || !caches_on() ? override : capture_calls[function];
}

bool override_unrecorded(enum abi_index function, mgpu_rt_function *answer) {
    if (load_acquire(&runtime_mode) != MODE_OVERRIDE ||
        (!override_inside && load_acquire(&awaited)))
        return false;
    *answer = asks_overrides() ? load_acquire(&overrides[function]) : NULL;
    return true;
}

/* ---- begin and end ---- */

void override_start(void) {
    if (options.runtime[0]) {
        store_release(&awaited, 1);
        fetch_or_release(&runtime_mode, MODE_OVERRIDE);
    }
}

static void answer_alone(void) {
    fetch_and_release(&runtime_mode, ~(unsigned)MODE_OVERRIDE);
    store_release(&awaited, 0);
    for (int i = 0; i < ABI_COUNT; i++)
        store_release(&overrides[i], NULL);
    store_release(&override_count, 0);
}

/* Ends the overrides in a forked child. But if the parent has not begun to create the runtime of
 * MGPU_RT_RUNTIME, the child may create this runtime. */
void override_forked(void) {
    host_lock = overrides_lock =
        (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER; /* a thread of the parent held the locks */
    word_is_ending = 0;                             /* HIP has no objects here */
    if (begun || !load_acquire(&awaited)) {
        answer_alone();
        at_end = NULL;
    }
}

void override_end(void) {
    const mgpu_rt_function end = exchange_acq_rel(&at_end, NULL);
    answer_alone();
    if (end)
        end();
}
