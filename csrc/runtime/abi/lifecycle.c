/* The life of the library in a process: first call, fork, exit. */
#include "abi/lifecycle.h"
#include "abi/exclusive_end.h"
#include "abi/override.h"
#include "graphs/graphs.h"
#include "manager/manager.h"
#include "memory/blocks.h"
#include "memory/neighbours.h"
#include "memory/registrations.h"
#include "memory/staging.h"
#include "modules/modules.h"
#include "process/lines.h"
#include "process/mapped.h"
#include "process/own_thread.h"
#include "sparse/plugin.h"
#include "streams/lazy_sync.h"
#include "streams/streams_pool.h"
#include "telemetry/recording/recorder.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { EXIT_REGISTRATIONS = 8 };

static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static bool options_known;
static bool installing; /* under start_lock */

/* ---- the caches ---- */

/* reset_cache comes first, so that a reset is detected before any other cache releases handles.
 * caches_end invalidates reset_cache last: until then, every thread that checks for a reset still
 * detects the reset. */
static const struct cache *const caches[] = {
    &reset_cache, &function_graph_cache, &staging_cache, &registration_cache, &module_cache,
    &block_cache, &environment_cache,    &stream_cache,  &graph_cache,        NULL,
};

/* ---- fork ---- */

/* In a forked child tables_lock is free, and everything that it guards is consistent. No allocator
 * is called under the lock, because a fork may hold the allocator's lock. */
static void before_fork(void) {
    pthread_mutex_lock(&tables_lock);
    registrations_before_fork();
    mapped_before_fork();
}
static void in_parent(void) {
    mapped_after_fork();
    pthread_mutex_unlock(&tables_lock);
    registrations_after_fork();
}

/* HIP works in a forked child if it was not started before the fork. If another thread of the
 * parent was starting the library during the fork, the child starts the library again in its own
 * first call. */
static void in_child(void) {
    const bool started = !(load_acquire(&runtime_mode) & MODE_UNSTARTED);
    mapped_after_fork();
    override_forked();
    graph_forked();
    report_forked();
    registrations_forked();
    neighbours_forked();
    start_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    if (installing || (started && stats_wanted()))
        recorder_leave();
    else if (started)
        stats_reset();
    installing = false;
    if (started) {
        runtime_forked = true;
        fetch_or_release(&runtime_mode, MODE_FORKED);
    }
    pthread_mutex_unlock(&tables_lock);
}

/* Registers the handlers before any call of the library. A forked child must get a new start_lock,
 * because another thread of the parent may hold start_lock during the fork. */
__attribute__((constructor)) static void watch_forks(void) {
    pthread_atfork(before_fork, in_parent, in_child);
}

/* ---- exit: handlers run last in, first out ----
 *
 *     run_exit                      EXITING   nothing is cached any longer
 *     HIP's of its first use
 *     note_late                     LATE      HIP has destroyed what its first use created
 *     HIP's of its opening
 *     note_end_of_hip               OVER      HIP has ended
 *     the destructors of libraries            the last one here completes the recording
 */

/* Destroys streams only on HIP 7, and only idle streams. HIP 7 reports the signals of the remaining
 * streams as leaked, and waits for these streams when HIP ends. hipFree waits for the device, even
 * for work that waits for the program. Before HIP 7 hipStreamDestroy waits for the stream's queue,
 * which other streams share. HIP has no function that reports whether a device is idle. The driver
 * frees all streams and blocks when the process ends, as it does with stock. From here on every
 * call behaves as in stock. */
static void run_exit(void) {
    static bool ran;
    if (ran)
        return;
    ran = true;
    (void)cancel_forbid(); /* a cancelled thread would not end the process */
    override_end();
    if (!runtime_forked) {
        manager_stop();
        PROOF_STEP(idle_thread_calls_no_hip_from_here_on, neighbours_stop());
        lazy_settle(NULL);
        registrations_end();
        if (options.caches && PROOF(hip_waits_at_its_end_anyway, hip_version >= HIP_7))
            stream_trim_at_exit();
    }
    fetch_or_release(&runtime_mode, MODE_EXITING);
    if (!runtime_forked)
        caches_end(ALL_DEVICES);
    store_relaxed(&options.caches, 0);
}

/* Registered before the library first calls HIP. */
static void note_late(void) {
    fetch_or_release(&runtime_mode, MODE_LATE);
}

/* Registered before the library opens HIP. */
static void note_end_of_hip(void) {
    fetch_or_release(&runtime_mode, MODE_LATE | MODE_OVER);
}

/* Runs after the program's global destructors, so that their calls are counted. */
__attribute__((destructor)) static void close_recorder(void) {
    recorder_close();
}

static void register_run_exit(void) {
    static int registrations;
    if (fetch_add_relaxed(&registrations, 1) < EXIT_REGISTRATIONS)
        atexit(run_exit);
}

/* ---- start ---- */

/* The HIP library that was opened when this library was loaded; its path is "" if no library was
 * opened. */
static struct hip_library early;

static bool open_hip(struct hip_library *library, const char *wanted, bool silent) {
    static bool registered;
    if (!exchange_relaxed(&registered, true))
        atexit(note_end_of_hip);
    return hip_open(library, wanted, silent);
}

/* A program that imports mgpu* functions will call these functions, and may do so only in its
 * destructors. With stock, HIP is mapped before main, and so ends after the program's destructors.
 * The library opens HIP before main, so that HIP ends after the program's destructors here, too. A
 * program that imports no mgpu* function pays only for this check of its imports. A library that
 * shares its HIP is asked by the first call, once its constructors have run. */
__attribute__((constructor)) static void open_early(void) {
    const char *wanted = options_path_variable("MGPU_RT_HIP");
    if (!mapped_imports("mgpu") || hip_is_shared())
        return;
    /* The first call reads MGPU_RT_VERBOSE in a program that imports no mgpu* function. */
    options.verbose_on = options_early_verbose();
    if (!open_hip(&early, wanted ? wanted : "", true))
        early.path[0] = '\0';
}

static bool find_hip(struct hip_library *library) {
    if (early.path[0]) {
        *library = early;
        return true;
    }
    return open_hip(library, options.hip, false);
}

/* The facts that HIP reports when the library starts it, and the time of the start. */
struct found {
    int devices;  /* -1: HIP does not report the number of devices */
    int version;  /* 0: HIP does not report the version */
    bool crashes; /* HIP crashes in most calls */
    uint64_t begin, nanoseconds;
};
static const struct found nothing_found = {.devices = -1};

/* If HIP_VISIBLE_DEVICES or ROCR_VISIBLE_DEVICES hides all devices, most functions of HIP 5.2.3
 * crash. HIP's later releases return hipErrorNoDevice. If the machine has no device, hipGetDevice
 * returns another error, and HIP does not crash. */
static bool crashes_without_device(const struct hip_functions *functions, struct found found) {
    int device;
    return found.devices == 0 && found.version < HIP_5_7 &&
           functions->GetDevice(&device) == hipErrorNoDevice;
}

static struct found start_hip(const struct hip_functions *functions) {
    struct found found = nothing_found;
    found.begin = clock_ns();
    const hipError_t started = functions->Init(0);
    const hipError_t counted = functions->GetDeviceCount(&found.devices);
    const hipError_t told = functions->RuntimeGetVersion(&found.version);
    if (counted != hipSuccess)
        found.devices = counted == hipErrorNoDevice ? 0 : -1;
    found.crashes = crashes_without_device(functions, found);
    if (started != hipSuccess || counted != hipSuccess || told != hipSuccess)
        (void)functions->GetLastError(); /* the program's calls must report this error */
    found.nanoseconds = clock_ns() - found.begin;
    return found;
}

static void report_found(const char *path, int devices) {
    char count[16] = "unknown";
    if (devices >= 0)
        snprintf(count, sizeof count, "%d", devices);
    report_verbose("HIP: %s, devices: %s; cache %s", path[0] ? path : "none", count, options.cache);
}

static void install(const struct hip_library *library, struct found found) {
    const struct found started = found;
    counts.start.version = found.version;
    if (!options.caches)
        found = nothing_found; /* discards HIP's answers, because stock makes no such queries */
    limits_set();
    hip_device_count = found.devices > 0 ? found.devices : 1;
    hip_no_device = found.devices == 0;
    hip_version = found.version;
    if (found.crashes)
        hip_install_without_device(library);
    else if (library->path[0])
        hip_install(library);
    witness_install();
    hip_untimed = hip;
    if (stats_wanted()) {
        driver_calls_watch();
        recorder_open(started.begin);
        recorder_start(started.begin, started.nanoseconds);
        at_quick_exit(recorder_close); /* exit itself runs run_exit and close_recorder */
    }
    report_found(library->path, found.devices);
    if (stats_wanted())
        fetch_or_release(&runtime_mode, MODE_TIMED);
    fetch_and_release(&runtime_mode, ~(unsigned)MODE_UNSTARTED);
}

/* Calls the loader only before it takes start_lock. Another thread may hold the loader's lock and
 * wait for start_lock. */
static void find_and_install(void) {
    struct hip_library library;
    struct found found = nothing_found;
    const bool opened = find_hip(&library);
    markers_open();
    atexit(note_late);
    if (opened && options.caches && options.witness_on)
        witness_open(&library.witness);
    if (opened && (options.caches || stats_wanted()))
        found = start_hip(&library.functions);
    pthread_mutex_lock(&start_lock);
    installing = true;
    if (load_acquire(&runtime_mode) & MODE_UNSTARTED)
        install(&library, found);
    installing = false;
    pthread_mutex_unlock(&start_lock);
}

/* HIP's objects belong to the parent. So the child's first call asks HIP for
 * new objects, and HIP reports that it does not work in the child. */
static void open_in_child(void) {
    pthread_mutex_lock(&start_lock);
    if (runtime_is(MODE_FORKED))
        PROOF_STEP(objects_are_the_parents, caches_end(ALL_DEVICES));
    fetch_and_release(&runtime_mode, ~(unsigned)MODE_FORKED);
    pthread_mutex_unlock(&start_lock);
}

static void make_start(void) {
    pthread_mutex_lock(&start_lock);
    if (!options_known) {
        options_read(&options);
        override_start();
        caches_set(caches);
        register_exit = register_run_exit;
        limit_reached = manager_start;
        witness_ends_word = exclusive_end;
        neighbours_start();
    }
    options_known = true;
    pthread_mutex_unlock(&start_lock);
    find_and_install();
    register_run_exit();
    manager_prepare();
}

void runtime_start(void) {
    const unsigned mode = load_acquire(&runtime_mode);
    if (LIKELY(!(mode & (MODE_FORKED | MODE_UNSTARTED))))
        return;
    const int before = cancel_forbid();
    if (mode & MODE_FORKED)
        open_in_child();
    if (mode & MODE_UNSTARTED)
        make_start();
    cancel_allow(before);
}
