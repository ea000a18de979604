/* Runs the library's own thread. This thread finds an interpreter, starts the manager in the
 * interpreter, and answers the manager's requests.
 *
 * The thread receives no signals of the program, and holds no lock while it waits. The thread calls
 * HIP only under `gate`; after manager_stop, the thread no longer calls HIP. The thread starts when
 * a cache reaches its limit, because the manager decides nothing before. A policy or a delay that
 * the user names starts the thread earlier. In most programs the thread never starts. */
#include "manager/manager.h"
#include "atomics.h"
#include "driver/hip.h"
#include "driver/report.h"
#include "manager/interpreter.h"
#include "manager/services.h"
#include "manager/spawn.h"
#include "process/cancel.h"
#include "process/options.h"
#include "process/state.h"
#include "proof.h"
#include "telemetry/channel.h"
#include "telemetry/counters.h"
#include "telemetry/process.h"
#include "telemetry/publish.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    LOOK = 1000,   /* ms between two checks that the manager is alive */
    GLANCE = 20,   /* ms between two checks that the manager has started */
    BEGIN = 60000, /* ms: the longest time for the manager's start */
    SLOW = 30000,  /* ms: if the manager sends no heartbeat for this time, the library reports that
                    * the manager is slow */
    JOIN = 50000000, /* ns: the longest wait for the thread at exit, because the thread may be
                      * starting a process */
    STACK = 1 << 20,
    TRIED = 768,
};

static pthread_t thread;
static bool reading, prepared; /* reading: a call has begun to read the environment;
                                * prepared: the call has read the environment */
static bool started, stopping; /* under `gate` */
static uint32_t state = MANAGER_NONE;
static uint32_t stop_doorbell;
static struct channel *channel;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER; /* held only during C code and calls of
                                                          * HIP */
static struct environment_snapshot around;

static struct advice no_python = {
    .text = "no Python to manage the caches (%s): the library itself evicts the least recently "
            "used objects. Set MGPU_RT_MANAGER to an interpreter that has cffi, or to off"};
static struct advice manager_gone = {.text = "the manager in Python has ended: the library itself "
                                             "evicts the least recently used objects"};
static struct advice manager_slow = {
    .text = "the manager in Python has not looked at the caches for half a minute: the library "
            "goes on without the manager until the manager answers"};
static struct advice too_late = {
    .text =
        "MGPU_RT_POLICY=%s: the program ended before this policy took effect, after some tenths of "
        "a second. Nothing shows yet whether Python can load the policy: run a longer program"};
static struct advice foreign_python = {.text = "the caches are managed by '%s' (%s)"};

static bool is_stopping(void) {
    return load_acquire(&stopping);
}

enum manager_state manager_state(void) {
    return (enum manager_state)load_acquire(&state);
}

/* ---- waiting ---- */

static void rest(uint64_t milliseconds) {
    const uint64_t end = clock_ns() + milliseconds * 1000000;
    for (uint64_t now = clock_ns(); !is_stopping() && now < end; now = clock_ns())
        channel_wait(&stop_doorbell, 0, (end - now) / 1000000 + 1);
}

/* Waits until the doorbell's number differs from `heard`, but at most `milliseconds`. */
static void wait_for_doorbell(struct channel *to, uint32_t heard, uint64_t milliseconds) {
    if (!is_stopping())
        channel_wait(&to->doorbell, heard, milliseconds);
}

/* ---- the channel ---- */

static void make_robust(pthread_mutex_t *mutex) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    PROOF_STEP(other_process_learns_of_an_end,
               pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST));
    pthread_mutex_init(mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

/* The manager waits until `ready` is set. */
static void set_up_channel(struct channel *fresh) {
    fresh->magic = CHANNEL_MAGIC;
    fresh->layout = CHANNEL_LAYOUT;
    snprintf(fresh->version, sizeof fresh->version, "%s", MGPU_RT_VERSION);
    for (uint64_t i = 0; i < CHANNEL_EVENTS; i++)
        fresh->cells[i].turn = i;
    make_robust(&fresh->program);
    make_robust(&fresh->manager);
    pthread_mutex_lock(&fresh->program);
    store_release(&fresh->ready, 1);
    channel_ring(&fresh->ready);
}

/* Returns whether the manager's process still runs. The process holds the mutex `manager` until the
 * process ends. */
static bool is_alive(struct channel *of) {
    return pthread_mutex_trylock(&of->manager) == EBUSY;
}

/* ---- starting ---- */

static char *variable(const char *name, const char *value) {
    char *text = NULL;
    return value && asprintf(&text, "%s=%s", name, value) > 0 ? text : NULL;
}

/* Builds the environment of the manager. The environment does not contain LD_PRELOAD, which would
 * load this library into the manager. The environment contains no MGPU_RT options except the two
 * options for the policy. Made once. */
static char **make_environment(void) {
    const struct {
        const char *name, *value;
    } wanted[] = {
        {"PATH", around.search},
        {"LD_LIBRARY_PATH", around.libraries},
        {"HOME", around.home},
        {"LC_ALL", "C.UTF-8"},
        {"MGPU_RT_POLICY", options.policy},
        {"MGPU_RT_POLICY_PATH", around.modules},
    };
    static char *environment[sizeof wanted / sizeof *wanted + 1];
    int count = 0;
    if (environment[0])
        return environment;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if ((environment[count] = variable(wanted[i].name, wanted[i].value)))
            count++;
    environment[count] = NULL;
    return environment;
}

static const char *why_not(int error) {
    static char text[64];
    if (error == ECHILD)
        return "this process adopts orphans, so that the manager would be its child: run it under "
               "an init of its own, as docker run --init does";
    if (error == ESRCH)
        return "process 1 of this container may never wait for the manager, which would stay as a "
               "zombie: run it under an init, as docker run --init does";
    if (error == ENOSYS)
        return "no process can be made here that shares memory (valgrind makes a copy instead)";
    return strerror_r(error, text, sizeof text);
}

/* Waits until the manager's process serves, and returns true then. Returns false and the reason if
 * the process ends, or does not serve in time. */
static bool begins(struct channel *fresh, pid_t process, char *reason, size_t size) {
    const uint64_t limit = clock_ns() + UINT64_C(1000000) * BEGIN;
    bool there = true;
    while (load_acquire(&fresh->state) == CHANNEL_STARTING && !fresh->reason[0] && there &&
           !is_stopping() && clock_ns() < limit) {
        rest(GLANCE);
        there = kill(process, 0) == 0 || errno != ESRCH;
    }
    fresh->reason[sizeof fresh->reason - 1] = '\0';
    if (fresh->reason[0])
        snprintf(reason, size, "%s", fresh->reason);
    else
        snprintf(reason, size, "it %s",
                 there ? "has not begun within a minute"
                       : "ended before it began (does it have mgpu_rt?)");
    return load_acquire(&fresh->state) == CHANNEL_SERVING;
}

/* Returns true for a failure that would also occur with another interpreter. */
static bool is_hopeless(int error) {
    return error == ECHILD || error == ESRCH || error == ENOSYS || error == EAGAIN ||
           error == ENOMEM;
}

/* Starts the manager, and returns the channel of the manager. After a failure, returns NULL and the
 * reason. If no process could be created, sets *error too. */
static struct channel *begin(const struct interpreter *interpreter, char *reason, size_t size,
                             int *error) {
    static struct command command; /* static, to leave the thread's stack to HIP */
    interpreter_command(interpreter, &command);
    struct spawn spawn = {.path = interpreter->path,
                          .arguments = command.arguments,
                          .environment =
                              PROOF_VALUE(manager_is_not_preloaded, make_environment(), environ),
                          .size = sizeof(struct channel)};
    if (!spawn_detached(&spawn)) {
        snprintf(reason, size, "%s", why_not(spawn.error));
        *error = spawn.error;
        return NULL;
    }
    struct channel *fresh = spawn.memory;
    set_up_channel(fresh);
    if (begins(fresh, spawn.pid, reason, size))
        return fresh;
    pthread_mutex_unlock(&fresh->program); /* stops the manager if its process still runs */
    munmap(fresh, sizeof *fresh);
    return NULL;
}

static void announce(const struct interpreter *interpreter) {
    if (interpreter->foreign)
        report_once(&foreign_python, interpreter->path, interpreter->because);
    else
        report_verbose("the caches are managed by '%s' (%s)", interpreter->path,
                       interpreter->because);
}

static struct channel *find_manager(void) {
    static struct interpreter interpreter;
    static char tried[TRIED];
    char reason[256];
    size_t used = 0;
    int step = 0;
    int error = 0;
    while (!is_stopping() && !is_hopeless(error) &&
           interpreter_next(&around, &step, &interpreter)) {
        struct channel *found = begin(&interpreter, reason, sizeof reason, &error);
        if (found) {
            announce(&interpreter);
            return found;
        }
        const int length =
            snprintf(tried + used, sizeof tried - used, "%s'%s' (%s): %s", used ? "; " : "",
                     interpreter.path, interpreter.because, reason);
        used = used + (size_t)length < sizeof tried ? used + (size_t)length : sizeof tried - 1;
    }
    if (error == ESRCH && !options.python[0] &&
        !options.policy[0]) /* the user did not ask for the manager */
        report_verbose("no manager: %s", tried);
    else if (!is_stopping())
        report_once(&no_python, used ? tried : "none found");
    return NULL;
}

/* ---- serving ---- */

/* Returns false once the gate is closed. */
static bool answer(struct channel *from) {
    pthread_mutex_lock(&gate);
    const bool open = !is_stopping();
    if (open)
        services_answer(from);
    pthread_mutex_unlock(&gate);
    fetch_add_release(&from->answered, 1);
    channel_ring(&from->answered);
    return open;
}

static void notice_slowness(struct channel *of) {
    static uint32_t done;
    static uint64_t since;
    const uint32_t now_done = load_acquire(&of->heartbeat) + load_acquire(&of->asked);
    const uint64_t now = clock_ns();
    if (now_done != done || !since) {
        done = now_done;
        since = now;
    } else if (now - since > UINT64_C(1000000) * SLOW) {
        report_once(&manager_slow);
    }
}

/* Returns true if all threads of the program have ended. The kernel then still counts two threads,
 * because a main thread that has ended counts until the process ends. */
static bool alone(void) {
    const unsigned long long threads =
        process_main_has_ended() ? process_field(getpid(), PROCESS_THREADS) : 0;
    return threads && threads <= 2;
}

static void serve(struct channel *from) {
    while (!is_stopping() && !DOUBT(program_has_no_other_thread, alone())) {
        const uint32_t heard = load_acquire(&from->doorbell);
        if (load_acquire(&from->asked) != from->answered) {
            (void)answer(from);
            continue;
        }
        if (!PROOF(manager_lives, is_alive(from))) {
            if (from->state == CHANNEL_SERVING) /* the manager sets another state after it has
                                                 * reported the reason for its end */
                report_once(&manager_gone);
            return;
        }
        notice_slowness(from);
        wait_for_doorbell(from, heard, LOOK);
    }
}

/* Writes the manager's line before the state becomes MANAGER_SERVING. */
static void log_manager(const struct channel *from) {
    report_verbose("manager: Python %.*s, process %d", (int)sizeof from->python - 1, from->python,
                   (int)from->process);
}

static void *run(void *unused) {
    (void)unused;
    pthread_setname_np(pthread_self(), "mgpu_rt");
    if (options.manager_delay_ms > 0)
        rest((uint64_t)options.manager_delay_ms);
    struct channel *found = is_stopping() || alone() ? NULL : find_manager();
    if (found) {
        log_manager(found);
        store_release(&channel, found);
        store_release(&state, MANAGER_SERVING);
        publish_to(found);
        serve(found);
        publish_to(NULL);
        pthread_mutex_unlock(&found->program);
    }
    store_release(&state, MANAGER_ENDED);
    return NULL;
}

/* ---- life ---- */

/* Creates the library's thread, which blocks all signals. */
static bool create_thread(void) {
    sigset_t all, before;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, PROOF_VALUE(signals_are_the_programs, &all, NULL), &before);
    const bool created = pthread_create(&thread, &attributes, run, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return created;
}

/* The exit handler may run on another thread, and closes the gate for ever. */
void manager_start(void) {
    if (load_acquire(&started) || !load_acquire(&prepared) || runtime_forked)
        return;
    const int before = cancel_forbid();
    pthread_mutex_lock(&gate);
    if (!started && !is_stopping()) {
        store_release(&state, MANAGER_STARTING);
        if (!create_thread()) {
            store_release(&state, MANAGER_NONE);
            report_verbose(
                "the manager's thread could not be started: the library goes on without a manager");
        }
        store_release(&started, true);
    }
    pthread_mutex_unlock(&gate);
    cancel_allow(before);
}

void manager_prepare(void) {
    if (!options.caches || options.manager_off || !hip_path()[0] || runtime_forked ||
        exchange_acq_rel(&reading, true))
        return;
    environment_snapshot_read(&around);
    store_release(&prepared, true);
    if (options.manager_delay_ms >= 0)
        manager_start();
}

/* Reports a policy that has taken no effect. The manager takes its first decision when it sends the
 * first heartbeat, some time after its start. */
static void report_policy_too_late(const struct channel *known) {
    const bool decides = known && load_acquire(&known->heartbeat) > 0;
    if (options.policy[0] && manager_state() != MANAGER_ENDED && !decides)
        report_once(&too_late, options.policy);
}

void manager_stop(void) {
    if (runtime_forked || is_stopping())
        return;
    report_policy_too_late(load_acquire(&channel));
    pthread_mutex_lock(&gate);
    store_release(&stopping, true);
    pthread_mutex_unlock(&gate);
    if (manager_state() == MANAGER_NONE)
        return;
    store_release(&stop_doorbell, 1);
    channel_ring(&stop_doorbell);
    struct channel *known = load_acquire(&channel);
    if (known) {
        fetch_add_release(&known->doorbell, 1);
        channel_ring(&known->doorbell);
    }
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_nsec += JOIN;
    if (limit.tv_nsec >= 1000000000) {
        limit.tv_nsec -= 1000000000;
        limit.tv_sec++;
    }
    if (pthread_timedjoin_np(thread, NULL, &limit) != 0)
        pthread_detach(thread); /* the thread checks `stopping` again soon, and then ends */
}

void manager_forked(void) {
    PROOF_STEP(parents_manager_hears_no_child, publish_to(NULL));
    store_release(&state, MANAGER_NONE);
}
