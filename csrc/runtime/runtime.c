/* The life of the library in a process: first call, fork, exit. */
#include "runtime.h"
#include "cuda.h"
#include "event.h"
#include "exclusive.h"
#include "lazy.h"
#include "memory.h"
#include "mgpu_rt.h"
#include "python.h"
#include "registry.h"
#include "stats.h"
#include "stream.h"
#include "trace.h"

#include <stdlib.h>
#include <string.h>

enum { EXIT_REGISTRATIONS = 8 };

unsigned runtime_mode = MODE_UNSTARTED;
bool runtime_forked;

static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static bool options_known;

/* ---- giving back ---- */

static int unload_unheld(const struct mgpu_policy *policy) {
    int count = 0;
    if (stream_any_busy())
        return 0; /* a kernel of an unloaded module may still run */
    for (struct module *module = handle_first(&registry_modules); module;
         module = (struct module *)module->handle.next) {
        pthread_mutex_lock(&registry_lock);
        const bool retired = registry_retire(module);
        pthread_mutex_unlock(&registry_lock);
        if (retired && policy->module_unload((void *)module->handle.key) == hipSuccess)
            count++;
    }
    return count;
}

static int destroy_idle(void) {
    int count = 0;
    for (struct stream *stream = handle_first(&stream_map); stream;
         stream = (struct stream *)stream->handle.next)
        if (stream_retire((hipStream_t)stream->handle.key) && stream_finish(stream) == hipSuccess)
            count++;
    return count;
}

static int give_back(void) {
    return unload_unheld(policy_serving()) + memory_give_back(-1) + destroy_idle() +
           event_trim(thread_get());
}

int mgpu_rt_empty_cache(void) {
    runtime_start();
    lazy_settle(NULL);
    return give_back();
}

/* ---- fork ---- */

static void before_fork(void) {
    pthread_mutex_lock(&registry_lock);
}
static void after_fork(void) {
    pthread_mutex_unlock(&registry_lock);
}

static void in_child(void) {
    runtime_forked = true;
    stats_reset();
    pthread_mutex_unlock(&registry_lock);
}

/* ---- exit ---- */

/* What the program has not freed when the exit handlers run: the driver takes it back with the
 * process, as with stock. */
static void report_held(void) {
    size_t bytes;
    const size_t count = memory_held(&bytes);
    if (count)
        report_verbose("%zu blocks of device memory (%zu bytes) were not freed by the program",
                       count, bytes);
}

/* Runs before the destructors of HIP's statics, as those were registered earlier, and before the
 * program's global destructors, where LLVM 21 and later unload their modules: what the program
 * still holds stays loaded, since an exit handler that runs later may launch. */
static void run_exit(void) {
    static bool ran;
    if (ran)
        return;
    ran = true;
    if (!runtime_forked) {
        const struct mgpu_policy *policy = policy_peek();
        lazy_settle(NULL);
        if (options.cache_on && hip_path()[0])
            (void)give_back();
        report_held();
        if (policy)
            policy->shutdown();
    }
    __atomic_fetch_or(&runtime_mode, MODE_EXITING, __ATOMIC_RELEASE);
}

/* After the program's global destructors, so that their calls are counted. */
__attribute__((destructor)) static void write_statistics(void) {
    if (options.stats && options.stats[0])
        stats_write(options.stats);
    if (options.trace && options.trace[0])
        trace_write(options.trace);
}

void runtime_register_exit(void) {
    static int registrations;
    if (__atomic_fetch_add(&registrations, 1, __ATOMIC_RELAXED) < EXIT_REGISTRATIONS)
        atexit(run_exit);
}

/* ---- start ---- */

/* What HIP says of itself when it starts. */
struct found {
    int devices; /* -1: it does not say */
    int version; /* 0: the same */
};

static struct found ask_hip(const struct hip_functions *functions) {
    struct found found = {-1, 0};
    const hipError_t started = functions->Init(0);
    const hipError_t counted = functions->GetDeviceCount(&found.devices);
    const hipError_t told = functions->RuntimeGetVersion(&found.version);
    if (counted != hipSuccess)
        found.devices = counted == hipErrorNoDevice ? 0 : -1;
    if (started != hipSuccess || counted != hipSuccess || told != hipSuccess)
        (void)functions->GetLastError(); /* the program's own calls are to meet the error */
    return found;
}

/* And Python beside it. */
static struct found start_hip(const struct hip_functions *functions) {
    pthread_t starter;
    const bool starting = policy_prepare(&starter);
    const struct found found = ask_hip(functions);
    if (starting)
        policy_prepared(starter);
    return found;
}

static void install(const struct hip_library *library, struct found found) {
    hip_device_count = found.devices > 0 ? found.devices : 1;
    hip_no_device = found.devices == 0;
    hip_version = found.version;
    if (library->path[0]) {
        hip_install(library);
        cuda_find(library->path);
    }
    if (stats_wanted())
        hip_time_calls();
    pthread_atfork(before_fork, after_fork, in_child);
    report_verbose("HIP: %s, %d device(s); cache %s", library->path[0] ? library->path : "none",
                   hip_device_count, options.cache);
    __atomic_store_n(&runtime_mode, stats_wanted() ? MODE_TIMED : 0, __ATOMIC_RELEASE);
}

void runtime_start(void) {
    if (LIKELY(!(__atomic_load_n(&runtime_mode, __ATOMIC_ACQUIRE) & MODE_UNSTARTED)))
        return;
    pthread_mutex_lock(&start_lock);
    if (!options_known)
        options_read(&options);
    options_known = true;
    pthread_mutex_unlock(&start_lock);
    struct hip_library library;
    exclusive_start();
    struct found found = {-1, 0};
    if (hip_open(&library, options.hip) && options.cache_on)
        found = start_hip(&library.functions);
    pthread_mutex_lock(&start_lock);
    if (__atomic_load_n(&runtime_mode, __ATOMIC_ACQUIRE) & MODE_UNSTARTED)
        install(&library, found);
    pthread_mutex_unlock(&start_lock);
    runtime_register_exit();
}

const char *mgpu_rt_version(void) {
    return MGPU_RT_VERSION;
}
