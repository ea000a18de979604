/* Runs the library's own thread, which starts the manager and takes turns with it.
 *
 * The thread receives no signals of the program, and holds no lock while it waits. It calls HIP
 * only under `gate`, and no longer after manager_stop. The thread starts when a cache reaches its
 * limit, because the manager decides nothing before. A policy or a delay that the user names starts
 * the thread earlier. In most programs the thread never starts. */
#include "manager/manager.h"
#include "manager/table.h"
#include "memory/blocks.h"
#include "mgpu_rt_private.h"
#include "modules/modules.h"
#include "process/interpreter.h"
#include "process/lines.h"
#include "process/mapped.h"
#include "process/own_thread.h"
#include "streams/streams_pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The shortest and the longest time between two turns of the manager, in milliseconds. GAP is also
 * the time between two checks in the manager's turn. */
enum { GAP = 100, LOOK = 1000 };

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER; /* held only during C code and calls of
                                                          * HIP */
static bool prepared, stopping;                          /* stopping: written under `gate` */
static bool wanted = true;         /* a cache has reached its limit since the last turn */
static const char *state = "none"; /* as mgpu_rt_manager returns it */
static struct table *shared;       /* NULL before the manager starts; stays mapped */
static char *environment[7];

static struct advice no_python = {
    .text = "no Python to manage the caches (%s: %s): the library itself evicts the least recently "
            "used objects. Set MGPU_RT_MANAGER to an interpreter that has cffi, or to off"};

const char *mgpu_rt_manager(void) {
    return runtime_forked ? "none" : load_acquire(&state);
}

/* Returns true if the program ends, or may end once its other threads have ended. */
static bool program_is_over(void) {
    return load_acquire(&stopping) || main_thread_has_ended();
}

/* ---- the library's turn ---- */

static const struct cache *const cache_of[TABLE_KINDS] = {
    [KIND_MODULE] = &module_cache, [KIND_STREAM] = &stream_cache, [KIND_BLOCK] = &block_cache};

_Static_assert(sizeof(struct table_object) == sizeof(struct cached), "cache_list writes both");
_Static_assert((int)TABLE_DEVICES == (int)MOST_DEVICES, "one entry for each device");

/* Takes `gate`; returns false once the gate is closed. While the program captures in HIP's global
 * mode, the release of an object breaks the capture. In relaxed mode, this thread may release
 * objects during a capture. */
static bool enter(void) {
    int mode = hipStreamCaptureModeRelaxed;
    pthread_mutex_lock(&gate);
    if (stopping) {
        pthread_mutex_unlock(&gate);
        return false;
    }
    (void)hip.ThreadExchangeStreamCaptureMode(&mode);
    return true;
}

static bool write_table(struct table *table) {
    if (!enter())
        return false;
    for (int kind = 0; kind < TABLE_KINDS; kind++) {
        struct cached *list = (struct cached *)table->objects[kind];
        table->counts[kind] = (uint32_t)cache_list(cache_of[kind], list, TABLE_OBJECTS);
    }
    table->module_bytes = cache_limits.module_bytes;
    table->streams = cache_limits.streams;
    for (int device = 0; device < MOST_DEVICES; device++)
        table->memory_bytes[device] = cache_limits.memory_bytes[device];
    pthread_mutex_unlock(&gate);
    return true;
}

/* The exit waits for one decision at most. */
static bool carry_out(struct table_decision decision) {
    void *const handle = (void *)(uintptr_t)decision.handle;
    if (!enter())
        return false;
    if (decision.action == ACTION_PIN)
        module_pin(handle, decision.value != 0);
    else if (decision.action == ACTION_EVICT && decision.kind >= 0 && decision.kind < TABLE_KINDS)
        (void)cache_of[decision.kind]->evict(handle);
    pthread_mutex_unlock(&gate);
    return true;
}

static void print_text(struct table *table) {
    char text[TABLE_TEXT], *next = text;
    memcpy(text, table->text, sizeof text);
    text[sizeof text - 1] = table->text[0] = '\0';
    for (char *line = strsep(&next, "\n"); line; line = strsep(&next, "\n"))
        if (line[0])
            line_print("%s", line);
}

/* Waits until a cache has reached its limit again. */
static void rest(struct table *table) {
    usleep(GAP * 1000);
    const uint32_t heard = load_acquire(&table->doorbell);
    if (!load_acquire(&wanted))
        word_wait(&table->doorbell, heard, LOOK);
    store_release(&wanted, false);
}

/* ---- the manager's turn ---- */

/* Gives the manager its turn, and waits for the answer. Returns false if the manager will not
 * answer, or if nobody needs the answer. */
static bool ask_manager(struct table *table, pid_t manager, const char *python) {
    const uint32_t turn = load_acquire(&table->turn) + 1;
    word_wake(&table->turn);
    for (;;) {
        const uint32_t heard = load_acquire(&table->doorbell);
        const bool is_alive = spawned_runs(manager);
        if (load_acquire(&table->turn) != turn)
            return true;
        if (program_is_over())
            return false;
        if (!is_alive)
            break;
        word_wait(&table->doorbell, heard, GAP);
    }
    table->text[TABLE_TEXT - 1] = '\0';
    report_once(&no_python, python,
                table->text[0] ? table->text : "the manager in Python has ended");
    return false;
}

static void serve(struct table *table, pid_t manager, const char *python) {
    while (write_table(table) && ask_manager(table, manager, python)) {
        print_text(table);
        store_release(&state, "serving");
        for (uint32_t i = 0; i < table->decided && i < TABLE_DECISIONS; i++)
            if (!carry_out(table->decisions[i]))
                return;
        rest(table);
    }
}

/* ---- starting ---- */

static void set_up(struct table *table) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&table->program, &attributes);
    pthread_mutexattr_destroy(&attributes);
    pthread_mutex_lock(&table->program);
    snprintf(table->version, sizeof table->version, "%s", MGPU_RT_VERSION);
    table->verbose = options.verbose_on;
    store_release(&shared, table);
}

/* -I: Python ignores the environment, the current directory and the user's packages. -X utf8:
 * Python needs no codec of the locale. -B: Python writes no bytecode files, because a full disk
 * would truncate such a file. The last argument shows a person whose manager this is. */
static void run_manager(void) {
    static char python[PATH_MAX], home[PATH_MAX], script[PATH_MAX + 32], program[16];
    char *const arguments[] = {python, "-IB", "-X", "utf8", script, program, NULL};
    const char *against = "neither make nor pip has recorded one";
    struct spawned manager = {
        .arguments = arguments, .environment = environment, .size = sizeof(struct table)};
    if (mapped_home(home))
        snprintf(script, sizeof script, "%s/mgpu_rt/manager/_manager.py", home);
    snprintf(program, sizeof program, "%ld", (long)getpid());
    if (interpreter_find(python))
        against = spawn_detached(&manager);
    else
        snprintf(python, sizeof python, "none");
    if (against) {
        report_once(&no_python, python, against);
        return;
    }
    set_up(manager.memory);
    serve(shared, manager.pid, python);
    pthread_mutex_unlock(&shared->program);
}

static void *run(void *unused) {
    (void)unused;
    pthread_setname_np(pthread_self(), "mgpu_rt");
    for (long left = options.manager_delay_ms; left > 0 && !program_is_over(); left -= LOOK)
        usleep((useconds_t)(left < LOOK ? left : LOOK) * 1000);
    if (!program_is_over())
        run_manager();
    store_release(&state, "ended");
    return NULL;
}

/* ---- life ---- */

static void start_thread(void) {
    store_release(&state, "starting");
    if (!own_thread_start(NULL, run, NULL))
        store_release(&state, "none");
}

void manager_start(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct table *table = load_acquire(&shared);
    if (!load_acquire(&prepared) || load_acquire(&stopping) || runtime_forked)
        return;
    (void)pthread_once(&once, start_thread);
    if (table && !load_relaxed(&wanted) && !exchange_acq_rel(&wanted, true))
        word_wake(&table->doorbell);
}

static void pass_on(const char *name, const char *value) {
    static int count;
    if (value && value[0] && asprintf(&environment[count], "%s=%s", name, value) > 0)
        count++;
}

/* The manager's environment contains no LD_PRELOAD, which would load this library into the manager.
 * A thread of the program copies the variables, because the program may change its environment
 * later. */
static void read_environment(void) {
    pass_on("PATH", getenv("PATH"));
    pass_on("LD_LIBRARY_PATH", getenv("LD_LIBRARY_PATH"));
    pass_on("HOME", getenv("HOME"));
    pass_on("LC_ALL", "C.UTF-8");
    pass_on("MGPU_RT_POLICY", options.policy);
    pass_on("MGPU_RT_POLICY_PATH", getenv("PYTHONPATH"));
    store_release(&prepared, true);
}

void manager_prepare(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (!options.caches || options.manager_off || !hip_path()[0] || runtime_forked)
        return;
    (void)pthread_once(&once, read_environment);
    if (options.manager_delay_ms >= 0)
        manager_start();
}

/* The thread notices the stop within a second. */
void manager_stop(void) {
    pthread_mutex_lock(&gate);
    store_release(&stopping, true);
    pthread_mutex_unlock(&gate);
}
