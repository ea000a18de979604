#include "memory/registrations.h"
#include "driver/device.h"
#include "memory/page_watch.h"
#include "process/own_thread.h"
#include "streams/streams.h"
#include "telemetry/counters.h"

#include <sched.h>
#include <semaphore.h>
#include <unistd.h>

/* The states of a registration.
 *
 *           from        to     by                                     order
 * register  GONE        TAKEN  who asks HIP for it                    cas seq_cst
 *           TAKEN       HELD   who was given it                       seq_cst
 * hit       IDLE        TAKEN  a register of these bytes              cas seq_cst
 * release   HELD        TAKEN  an unregister                          cas seq_cst
 * idle      TAKEN       IDLE   an unregister                          seq_cst
 * trim      IDLE        TAKEN  who gives it to HIP                    cas seq_cst
 * end       TAKEN       GONE   who gave it to HIP                     seq_cst
 *
 * A registration is in the table of ranges unless it is GONE. registrations_idle is the number of
 * bytes in all registrations that are IDLE, and in all TAKEN registrations that were IDLE before.
 * A recorded change of pages (page_watch.h) sets `stale` in any state of a registration; a fork
 * sets `stale` too. A thread that makes a registration IDLE checks `stale` afterwards. After
 * `stale` is set, the trimming thread visits the stale IDLE registrations. So a stale registration
 * is trimmed either by the thread that makes it IDLE or by the trimming thread. */
enum registration_state {
    REGISTRATION_GONE, /* the library knows of no registration in HIP */
    REGISTRATION_HELD, /* registered by the program */
    REGISTRATION_IDLE, /* the program has unregistered the memory, but HIP still holds the
                        * registration */
    REGISTRATION_TAKEN /* a thread owns the registration and is moving it to another state */
};

struct registration {
    struct handle handle; /* the address */
    struct range range;
    size_t bytes;
    int device;      /* the thread's current device when HIP registered the memory */
    int state;       /* enum registration_state */
    bool stale;      /* the pages at the address may have been replaced */
    bool watched;    /* the watch of the pages began before HIP pinned the pages */
    unsigned wasted; /* number of times that the registration became stale since its last reuse */
    struct queued queued; /* in the queue of idle registrations */
};

static struct handle_map registrations = HANDLE_MAP(struct registration);
size_t registrations_idle;

static pthread_mutex_t watching = PTHREAD_MUTEX_INITIALIZER; /* held while a thread changes a range
                                                              * and the range's watch */
static unsigned watched; /* number of registrations whose pages are watched */

static void *address_of(const struct registration *registration) {
    return (void *)registration->handle.key;
}

static bool move(struct registration *registration, int from, int to) {
    return cas_seq_cst(&registration->state, &from, to);
}

/* Returns the last registration that begins before `end` and shares bytes with [begin, end). Under
 * tables_lock. */
static struct registration *last_in(uintptr_t begin, uintptr_t end) {
    while (begin < end) {
        void *address = ranges_begin((void *)begin, end - begin);
        if (!address)
            return NULL;
        struct registration *found = handle_find(&registrations, address);
        if (found && found->range.begin == (uintptr_t)address && found->range.end > begin &&
            load_seq_cst(&found->state) != REGISTRATION_GONE)
            return found;
        end = (uintptr_t)address;
    }
    return NULL;
}

/* ---- the idle registrations ----
 *
 * A list under tables_lock: the stale registrations first, then the others from the least to the
 * most recently used. A registration in the list may be TAKEN. */

static struct queue idle_queue;

static void make_stale(struct registration *registration) {
    store_seq_cst(&registration->stale, true);
    if (!registration->queued.queue)
        return;
    queue_remove(&registration->queued);
    queue_add(&idle_queue, &registration->queued, NULL);
}

/* Marks the registrations of changed pages as stale. */
static void mark_changed(uintptr_t begin, uintptr_t end) {
    for (struct registration *each; (each = last_in(begin, end)); end = (uintptr_t)address_of(each))
        PROOF_STEP(replaced_pages_are_stale, make_stale(each));
}

/* Returns the first idle registration, or the first one that is stale. */
static struct registration *first_idle(bool is_stale) {
    struct registration *found = NULL;
    pthread_mutex_lock(&tables_lock);
    page_changes_apply(mark_changed);
    for (const struct queued *at = idle_queue.oldest; at && !found; at = at->newer) {
        struct registration *each = QUEUE_ENTRY(at, struct registration, queued);
        if (is_stale && !load_seq_cst(&each->stale))
            break;
        if (load_seq_cst(&each->state) == REGISTRATION_IDLE)
            found = each;
    }
    pthread_mutex_unlock(&tables_lock);
    return found;
}

/* ---- trimming ---- */

static void set_watched(struct registration *registration, bool value) {
    (void)fetch_add_relaxed(&watched, (unsigned)value - (unsigned)registration->watched);
    registration->watched = value;
}

/* Removes a registration's range, and ends the watch of the registration's pages. Pages that also
 * belong to another registration stay watched. */
static void unwatch(struct registration *registration) {
    uintptr_t begin = page_of((uintptr_t)address_of(registration));
    uintptr_t end = page_of((uintptr_t)address_of(registration) + registration->bytes - 1);
    pthread_mutex_lock(&tables_lock);
    queue_remove(&registration->queued);
    ranges_remove((uintptr_t)address_of(registration));
    const bool last_shared =
        DOUBT(last_page_is_watched_for_another, last_in(end, end + page_bytes));
    if (DOUBT(first_page_is_watched_for_another, last_in(begin, begin + page_bytes)))
        begin += page_bytes;
    pthread_mutex_unlock(&tables_lock);
    end += last_shared ? 0 : page_bytes;
    if (registration->watched && begin < end)
        page_watch_remove(begin, end - begin);
    set_watched(registration, false);
}

/* Ends a registration that the caller has taken, after HIP has unregistered the memory. */
static void end(struct registration *registration) {
    pthread_mutex_lock(&watching);
    unwatch(registration);
    pthread_mutex_unlock(&watching);
    store_seq_cst(&registration->state, REGISTRATION_GONE);
}

/* Adds a registration's bytes to the counts when the registration becomes idle. The caller passes a
 * negative number when the registration is no longer idle. */
static void count_idle(ptrdiff_t bytes) {
    (void)fetch_add_relaxed(&registrations_idle, (size_t)bytes);
    (void)fetch_add_relaxed(&counts.kept.ranges, bytes > 0 ? 1 : -1);
    (void)fetch_add_relaxed(&counts.kept.bytes, bytes);
}

/* Unregisters an idle registration that the caller has taken. registrations_idle contains the
 * registration until HIP has unregistered the memory, so that registrations_yield makes copies of
 * these bytes wait. */
static void unregister_idle(struct registration *registration) {
    const hipError_t error = hip.HostUnregister(address_of(registration));
    if (error != hipSuccess)
        device_clear_error(error);
    const bool changed = load_seq_cst(&registration->stale);
    registration->wasted += changed;
    (void)fetch_add_relaxed(&counts.kept.changed, changed);
    stats_eviction(CACHE_REGISTRATIONS);
    count_idle(-(ptrdiff_t)registration->bytes);
    end(registration);
}

static bool trim_one(struct registration *registration) {
    if (runtime_forked) /* HIP must not be called in a forked child */
        return false;
    witness_enter();
    const bool taken = move(registration, REGISTRATION_IDLE, REGISTRATION_TAKEN);
    if (taken)
        unregister_idle(registration);
    witness_leave();
    return taken;
}

void registrations_yield_to(const void *address, size_t bytes) {
    const enum range_kind kind = ranges_find(address, bytes);
    uintptr_t end = (uintptr_t)address + bytes;
    if (PROOF(memory_is_not_idle, kind != RANGE_IDLE && kind != RANGE_MIXED))
        return;
    for (;;) {
        pthread_mutex_lock(&tables_lock);
        struct registration *found = last_in((uintptr_t)address, end);
        pthread_mutex_unlock(&tables_lock);
        if (!found)
            return;
        while (load_seq_cst(&found->state) == REGISTRATION_TAKEN)
            step_aside(); /* another thread is unregistering or registering the memory */
        (void)trim_one(found);
        end = (uintptr_t)address_of(found);
    }
}

bool registrations_are_idle(const void *address, size_t bytes) {
    const uintptr_t begin = (uintptr_t)address;
    uintptr_t end = begin + bytes;
    bool idle = false;
    pthread_mutex_lock(&tables_lock);
    for (struct registration *each; (each = last_in(begin, end));
         end = (uintptr_t)address_of(each)) {
        idle = load_seq_cst(&each->state) == REGISTRATION_IDLE;
        if (!idle)
            break;
    }
    pthread_mutex_unlock(&tables_lock);
    return idle;
}

static int trim_all(int device) {
    int count = 0;
    (void)device;
    for (struct registration *each = handle_first(&registrations); each; each = handle_next(each))
        count += trim_one(each);
    return count;
}

/* registrations_idle contains each registration that another thread is giving back, or has just
 * decided to keep. */
void registrations_give_back(void) {
    if (runtime_forked) /* HIP must not be called in a forked child */
        return;
    for (;;) {
        (void)trim_all(ALL_DEVICES);
        fence_seq_cst();
        if (!DOUBT(another_thread_gives_back, load_relaxed(&registrations_idle) != 0))
            return;
        step_aside();
    }
}

const struct cache registration_cache = {.trim = trim_all, .holds_host_memory = true};

/* ---- stale ones ----
 *
 * The pages of a stale registration stay pinned until a thread of the library unregisters the
 * memory from HIP. The thread that reads events must not call HIP, because HIP may unmap memory. */

static sem_t some_are_stale;
static pthread_mutex_t calling_hip = PTHREAD_MUTEX_INITIALIZER;
static bool ended; /* under calling_hip */

static void *trim_when_stale(void *unused) {
    (void)unused;
    for (bool goes_on = true; goes_on;) {
        while (sem_wait(&some_are_stale) != 0)
            continue;
        pthread_mutex_lock(&calling_hip);
        goes_on = !ended;
        for (struct registration *each; goes_on && (each = first_idle(true));)
            (void)trim_one(each);
        pthread_mutex_unlock(&calling_hip);
    }
    return NULL;
}

/* The thread that reads events calls this function, which must not wait. */
static void pages_changed(void) {
    sem_post(&some_are_stale);
}

void registrations_end(void) {
    enum { MOST = 1000 }; /* ms: the thread's call to HIP may wait for a kernel */
    if (!lock_within(&calling_hip, MOST))
        return;
    ended = true;
    pthread_mutex_unlock(&calling_hip);
}

void registrations_before_fork(void) {
    for (struct registration *each = handle_first(&registrations); each; each = handle_next(each))
        PROOF_STEP(forked_pages_are_stale, make_stale(each));
}

void registrations_after_fork(void) {
    if (!handle_first(&registrations))
        return;
    pthread_mutex_lock(&tables_lock);
    registrations_before_fork();
    pthread_mutex_unlock(&tables_lock);
    sem_post(&some_are_stale);
}

void registrations_forked(void) {
    page_watch_forked();
    store_relaxed(&registrations_idle, 0);
    watching = calling_hip = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

/* ---- whether pages are watched ---- */

static bool watches;

static bool start_trimming(void) {
    return sem_init(&some_are_stale, 0, 0) == 0 && own_thread_start(NULL, trim_when_stale, NULL);
}

static void start_watching(void) {
    const char *reason = start_trimming() ? page_watch_open(pages_changed) : "no thread";
    watches = !reason;
    if (reason)
        report_verbose("registered memory is not cached: %s", reason);
    else
        report_verbose("registered memory is cached: it stays registered after "
                       "mgpuMemHostUnregister. Then mremap of a mapping that is partly registered "
                       "fails (EFAULT), and UFFDIO_REGISTER of registered pages (EBUSY): call "
                       "mgpu_rt_empty_cache first (docs/rule.md)");
}

static void say_no_word(void) {
    report_verbose("registered memory is not cached: %s",
                   exclusive_hip()
                       ? "MGPU_RT_CACHE leaves out registrations"
                       : "the cache needs MGPU_RT_EXCLUSIVE=on, and nothing that ends it");
}

static bool may_watch(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT, said = PTHREAD_ONCE_INIT;
    if (runtime_forked || runtime_exiting())
        return false;
    if (!exclusive_hip() || !cache_is_on(CACHE_REGISTRATIONS)) {
        pthread_once(&said, say_no_word);
        return false;
    }
    pthread_once(&once, start_watching);
    return watches && !page_watch_is_lost();
}

/* ---- the limit ---- */

static bool trim_oldest(void) {
    struct registration *first = first_idle(false);
    if (!first || !trim_one(first))
        return false;
    (void)fetch_add_relaxed(&counts.kept.limited, 1);
    return true;
}

static bool may_watch_one_more(void) {
    while (load_relaxed(&watched) >= MOST_WATCHED_RANGES)
        if (!trim_oldest())
            return false;
    return true;
}

/* Returns the limit that MGPU_RT_MEMORY_LIMIT names, in bytes or as a fraction of the machine's
 * memory. Only the first call asks the kernel for the size of this memory. */
static size_t limit_of_idle(void) {
    static long pages; /* 0: unknown */
    if (options.memory_limit_bytes)
        return options.memory_limit_bytes;
    if (!load_relaxed(&pages))
        store_relaxed(&pages, sysconf(_SC_PHYS_PAGES));
    const double memory = (double)load_relaxed(&pages) * (double)page_bytes;
    return (size_t)(memory * options.memory_limit_fraction);
}

static bool make_room(size_t bytes) {
    const size_t limit = limit_of_idle();
    if (bytes > limit)
        return false;
    while (load_relaxed(&registrations_idle) + bytes > limit)
        if (!trim_oldest())
            return false;
    return true;
}

/* ---- registering ---- */

/* If a program unmaps its memory after each registration, the program gets no hits, but each
 * unmapping would wait for an event. So the library stops watching memory that became stale
 * MOST_WASTED times. */
enum { MOST_WASTED = 4, ATTEMPTS = 64 };

static void apply_changes(void) {
    if (page_changes_are_applied())
        return;
    pthread_mutex_lock(&tables_lock);
    page_changes_apply(mark_changed);
    pthread_mutex_unlock(&tables_lock);
}

/* Returns whether the pages that HIP has pinned are still mapped at the registration's address.
 * Repeats the check while another thread is unmapping other watched memory. */
static bool pages_are_the_same(const struct registration *registration) {
    for (int i = 0; i < ATTEMPTS && !page_watch_is_lost(); i++) {
        if (PROOF(no_change_is_under_way, page_watch_settled())) {
            apply_changes();
            return !load_seq_cst(&registration->stale);
        }
        sched_yield();
    }
    return false;
}

static void set_kind(struct registration *registration, enum range_kind kind) {
    pthread_mutex_lock(&tables_lock);
    store_relaxed(&registration->range.kind, kind);
    ranges_change();
    if (kind == RANGE_IDLE)
        queue_add(&idle_queue, &registration->queued, idle_queue.newest);
    else
        queue_remove(&registration->queued);
    pthread_mutex_unlock(&tables_lock);
}

/* Reuses an idle registration that has exactly these bytes, belongs to the current device and has
 * unchanged pages. Returns false if the registration cannot be reused. */
static bool use_again(struct registration *registration, size_t bytes) {
    if (!move(registration, REGISTRATION_IDLE, REGISTRATION_TAKEN))
        return false;
    if (!PROOF(all_bytes_are_registered, registration->bytes == bytes) ||
        !PROOF(registered_on_this_device, registration->device == hip_current_device()) ||
        !pages_are_the_same(registration)) {
        unregister_idle(registration);
        return false;
    }
    set_kind(registration, RANGE_REGISTERED);
    count_idle(-(ptrdiff_t)bytes);
    registration->wasted = 0;
    store_seq_cst(&registration->state, REGISTRATION_HELD);
    return true;
}

/* Calls HIP to register memory. HIP may refuse the memory because idle registrations pin too much
 * memory, so the function then releases the idle registrations and tries again. */
static hipError_t register_by_hip(void *address, size_t bytes) {
    const hipError_t error = hip.HostRegister(address, bytes, 0);
    if (error == hipSuccess || !load_relaxed(&registrations_idle))
        return error;
    (void)trim_all(ALL_DEVICES);
    (void)hip.GetLastError();
    return hip.HostRegister(address, bytes, 0);
}

/* Registers the memory of a registration that the caller has taken. The watch of the memory's pages
 * begins before HIP pins the pages. If another range contains some of these bytes, the function
 * does not call HIP, and returns false.
 *
 * The kernel reports a drop of pages (MADV_DONTNEED) before it drops them, and may drop them at any
 * later time. So memory that had a drop is not watched again: HIP might pin a page that the kernel
 * then drops. The order matters: if the drop is recorded after the check, the range is already in
 * the table, and the change makes the registration stale. */
static bool register_watched(struct registration *registration, size_t bytes, hipError_t *error) {
    void *const address = address_of(registration);
    const bool watch = registration->wasted < MOST_WASTED && may_watch() && may_watch_one_more();
    registration->bytes = bytes;
    store_seq_cst(&registration->stale, false);
    pthread_mutex_lock(&watching);
    pthread_mutex_lock(&tables_lock);
    page_changes_apply(mark_changed);
    const bool alone = ranges_begin(address, bytes) == NULL;
    if (alone)
        ranges_add(&registration->range, (uintptr_t)address, bytes, RANGE_MIXED);
    pthread_mutex_unlock(&tables_lock);
    set_watched(registration,
                alone && watch &&
                    PROOF(no_drop_may_follow, !page_changes_had_drop(address, bytes)) &&
                    page_watch_add(address, bytes));
    pthread_mutex_unlock(&watching);
    if (!alone) {
        store_seq_cst(&registration->state, REGISTRATION_GONE);
        return false;
    }
    *error = register_by_hip(address, bytes);
    if (*error != hipSuccess) {
        end(registration);
        return true;
    }
    if (registration->watched && !PROOF(pages_are_of_no_file, pages_are_private(address, bytes)))
        store_seq_cst(&registration->stale, true); /* the kernel sends no event when it replaces
                                                    * these pages */
    if (registration->watched && !load_seq_cst(&registration->stale))
        stats_miss(CACHE_REGISTRATIONS);
    registration->device = hip_current_device();
    set_kind(registration, RANGE_REGISTERED);
    store_seq_cst(&registration->state, REGISTRATION_HELD);
    return true;
}

static hipError_t acquire(void *address, uint64_t bytes) {
    struct registration *registration =
        address && bytes && !runtime_forked ? handle_insert(&registrations, address) : NULL;
    hipError_t error;
    if (registration && use_again(registration, bytes)) {
        call_tell(CALL_HIT);
        return hipSuccess;
    }
    call_tell(CALL_BYPASS);
    registrations_yield(address, bytes);
    while (registration && load_seq_cst(&registration->state) == REGISTRATION_TAKEN)
        step_aside();
    if (registration && move(registration, REGISTRATION_GONE, REGISTRATION_TAKEN) &&
        register_watched(registration, bytes, &error))
        return error;
    error = register_by_hip(address, bytes);
    if (error != hipSuccess)
        return error;
    /* HIP has registered these bytes, although the table may still contain an older registration of
     * the same bytes. Other code has then ended the older registration. */
    if (registration && (move(registration, REGISTRATION_HELD, REGISTRATION_TAKEN) ||
                         move(registration, REGISTRATION_GONE, REGISTRATION_TAKEN))) {
        set_watched(registration, false);
        registration->bytes = bytes;
        pthread_mutex_lock(&tables_lock);
        ranges_add(&registration->range, (uintptr_t)address, bytes, RANGE_REGISTERED);
        pthread_mutex_unlock(&tables_lock);
        store_seq_cst(&registration->state, REGISTRATION_HELD);
    } else {
        ranges_change(); /* HIP's cached answers about memory are now invalid */
    }
    return error;
}

hipError_t registration_acquire(void *address, uint64_t bytes) {
    witness_enter();
    const hipError_t error = acquire(address, bytes);
    witness_leave();
    return error;
}

/* ---- unregistering ---- */

static bool devices_are_done(void) {
    bool done = true;
    for (int device = 0; device < hip_device_count && done; device++)
        done = stream_wait_for_device(device) == hipSuccess;
    return done;
}

/* Returns true if a registration may become idle when the program unregisters the memory. Waits
 * until all work that may use the memory is done. */
static bool may_be_idle(const struct registration *registration) {
    return registration->watched && !load_seq_cst(&registration->stale) && may_watch() &&
           ranges_find(address_of(registration), registration->bytes) == RANGE_REGISTERED &&
           !runtime_is(MODE_EXTERNAL) && make_room(registration->bytes) &&
           PROOF(no_work_uses_the_memory, devices_are_done());
}

static hipError_t release(void *address) {
    struct registration *registration =
        runtime_forked ? NULL : handle_find(&registrations, address);
    registrations_yield(address, 1);
    const bool taken = registration && move(registration, REGISTRATION_HELD, REGISTRATION_TAKEN);
    if (taken && may_be_idle(registration)) {
        set_kind(registration, RANGE_IDLE);
        count_idle((ptrdiff_t)registration->bytes);
        store_seq_cst(&registration->state, REGISTRATION_IDLE);
        fence_seq_cst();
        if (!PROOF(word_stands_for_an_idle_registration, exclusive_hip()))
            registrations_give_back();
        else if (load_seq_cst(&registration->stale))
            (void)trim_one(registration);
        return hipSuccess;
    }
    const hipError_t error = hip.HostUnregister(address);
    if (taken && error == hipSuccess)
        end(registration);
    else if (taken)
        store_seq_cst(&registration->state, REGISTRATION_HELD);
    if (taken || error != hipSuccess)
        return error;
    /* The table contains no registration of that address by the program. */
    pthread_mutex_lock(&tables_lock);
    struct registration *around = last_in((uintptr_t)address, (uintptr_t)address + 1);
    pthread_mutex_unlock(&tables_lock);
    if (around && move(around, REGISTRATION_HELD, REGISTRATION_TAKEN))
        end(around);
    else
        ranges_change();
    return error;
}

hipError_t registration_release(void *address) {
    witness_enter();
    const hipError_t error = release(address);
    witness_leave();
    return error;
}
