/* Steps at the limits of a process: many handles, and threads that are at work when the process
 * ends. */
#include "steps.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* ---- many handles ---- */

enum { MOST_IN_CROWD = 10000, CROWD_BYTES = 256, CROWD_STRIDE = 97 };
enum { CROWD_EVENTS, CROWD_STREAMS, CROWD_BLOCKS, CROWD_KINDS };

static struct {
    void *handles[MOST_IN_CROWD];
    size_t count;
} crowds[CROWD_KINDS];

static void *crowd_new(long long kind, void *stream) {
    if (kind == CROWD_EVENTS)
        return mgpuEventCreate();
    return kind == CROWD_STREAMS ? mgpuStreamCreate() : mgpuMemAlloc(CROWD_BYTES, stream, false);
}

static int compare_handles(const void *left, const void *right) {
    const uintptr_t a = (uintptr_t)*(void *const *)left, b = (uintptr_t)*(void *const *)right;
    return (a > b) - (a < b);
}

/* Counts the distinct handles that are not NULL. */
static size_t count_handles(void **handles, size_t count) {
    void **sorted = malloc(count * sizeof *sorted);
    memcpy(sorted, handles, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare_handles);
    size_t found = 0;
    for (size_t i = 0; i < count; ++i)
        found += sorted[i] != NULL && (i == 0 || sorted[i] != sorted[i - 1]);
    free(sorted);
    return found;
}

/* Uses one of many handles, so that the library looks up handles in all parts of its tables. */
static void crowd_use(long long kind, void *handle, int value, void *stream) {
    if (kind == CROWD_EVENTS) {
        mgpuEventRecord(handle, stream);
        mgpuStreamWaitEvent(stream, handle);
    } else if (kind == CROWD_BLOCKS) {
        mgpuMemset32(handle, value, CROWD_BYTES / 4, stream);
    } else {
        mgpuStreamSynchronize(handle);
    }
}

/* crowd KIND COUNT STREAM: creates COUNT handles that live at once, and uses some of them */
static void play_crowd(const struct step *step) {
    const long long kind = ARGUMENT(0);
    void **handles = crowds[kind].handles;
    const size_t count = crowds[kind].count = (size_t)ARGUMENT(1);
    for (size_t i = 0; i < count; ++i)
        handles[i] = crowd_new(kind, STREAM(2));
    for (size_t i = 0; i < count; i += CROWD_STRIDE)
        crowd_use(kind, handles[i], (int)i, STREAM(2));
    say(step, "%zu live", count_handles(handles, count));
}

static size_t count_wrong_blocks(void **handles, size_t count, void *stream) {
    size_t wrong = 0;
    for (size_t i = 0; i < count; i += CROWD_STRIDE) {
        uint32_t words[CROWD_BYTES / 4];
        mgpuMemcpy(words, handles[i], sizeof words, stream);
        mgpuStreamSynchronize(stream);
        for (size_t k = 0; k < CROWD_BYTES / 4; ++k)
            wrong += words[k] != i;
    }
    return wrong;
}

/* uncrowd WHO KIND STREAM: destroys the handles that the step crowd created; if WHO is 1, HIP
 * destroys every second handle */
static void play_uncrowd(const struct step *step) {
    static const char *const names[] = {"hipEventDestroy", "hipStreamDestroy", "hipFree"};
    const long long kind = ARGUMENT(1);
    void **handles = crowds[kind].handles;
    mgpuStreamSynchronize(STREAM(2));
    if (kind == CROWD_BLOCKS)
        say(step, "%zu wrong", count_wrong_blocks(handles, crowds[kind].count, STREAM(2)));
    for (size_t i = 0; i < crowds[kind].count; ++i) {
        if (ARGUMENT(0) != 0 && i % 2 != 0)
            check(step, ((int (*)(void *))foreign(names[kind]))(handles[i]));
        else if (kind == CROWD_EVENTS)
            mgpuEventDestroy(handles[i]);
        else if (kind == CROWD_STREAMS)
            mgpuStreamDestroy(handles[i]);
        else
            mgpuMemFree(handles[i], STREAM(2));
    }
    crowds[kind].count = 0;
}

/* ---- threads at work when the process ends ---- */

enum busy_with {
    BUSY_EVENTS = 1, /* created and destroyed without use */
    BUSY_STREAMS = 2,
    BUSY_BLOCKS = 4,
    BUSY_MODULES = 8,
    BUSY_COPIES = 16,
    BUSY_RECORDS = 32,
    BUSY_KINDS = 6
};

struct busy {
    uint32_t state; /* state of the thread's random numbers */
    unsigned kinds;
    int device;
};

static atomic_uint busy_rounds;

static uint32_t busy_random(struct busy *busy) {
    busy->state = busy->state * 1664525u + 1013904223u;
    return busy->state >> 16;
}

static void busy_with_events(void *stream, bool records) {
    void *event = mgpuEventCreate();
    if (records) {
        mgpuEventRecord(event, stream);
        mgpuStreamWaitEvent(stream, event);
        mgpuEventSynchronize(event);
    }
    mgpuEventDestroy(event);
}

static void busy_with_blocks(struct busy *busy, void *stream, bool copies) {
    static uint32_t words[1024];
    const size_t count = 16u << busy_random(busy) % 7;
    void *block = mgpuMemAlloc(4 * count, stream, false);
    mgpuMemset32(block, 1, count, stream);
    if (copies)
        mgpuMemcpy(block, words, 4 * count, stream);
    mgpuMemFree(block, stream);
}

static void busy_with_modules(struct busy *busy) {
    size_t bytes;
    const void *image = image_content((int)(busy_random(busy) % 6), &bytes);
    void *module = mgpuModuleLoad((void *)(uintptr_t)image, bytes);
    mgpuModuleGetFunction(module, "mix");
    mgpuModuleUnload(module);
}

static void busy_once(struct busy *busy, unsigned kind, void *stream) {
    if (kind == BUSY_EVENTS || kind == BUSY_RECORDS)
        busy_with_events(stream, kind == BUSY_RECORDS);
    else if (kind == BUSY_BLOCKS || kind == BUSY_COPIES)
        busy_with_blocks(busy, stream, kind == BUSY_COPIES);
    else if (kind == BUSY_MODULES)
        busy_with_modules(busy);
}

static void *be_busy(void *argument) {
    struct busy *busy = argument;
    if (busy->device > 0)
        mgpuSetDefaultDevice(busy->device);
    const bool streams = busy->kinds != BUSY_EVENTS;
    void *stream = streams ? mgpuStreamCreate() : NULL;
    for (;;) {
        const unsigned kind = busy->kinds & 1u << busy_random(busy) % BUSY_KINDS;
        busy_once(busy, kind, stream);
        if (streams && (kind == BUSY_STREAMS || busy_random(busy) % 8 == 0)) {
            mgpuStreamSynchronize(stream);
            mgpuStreamDestroy(stream);
            stream = mgpuStreamCreate();
        }
        atomic_fetch_add(&busy_rounds, kind != 0);
    }
    return NULL;
}

/* busy THREADS SEED KINDS ROUNDS DEVICES: starts threads that call the runtime until the process
 * ends; returns once the threads have made ROUNDS rounds */
static void play_busy(const struct step *step) {
    const long long threads = ARGUMENT(0);
    for (long long i = 0; i < threads; ++i) {
        struct busy *busy = malloc(sizeof *busy);
        *busy = (struct busy){(uint32_t)(ARGUMENT(1) + 7919 * i), (unsigned)ARGUMENT(2),
                              (int)(i % ARGUMENT(4))};
        pthread_t thread;
        if (pthread_create(&thread, NULL, be_busy, busy) != 0)
            give_up("no thread");
        pthread_detach(thread);
    }
    while (atomic_load(&busy_rounds) < (unsigned)ARGUMENT(3))
        sched_yield();
}

/* ---- the time between events ---- */

/* elapsed HOW STREAM: calls mgpuEventElapsedTime, which LLVM's own library lacks, with one of its
 * two signatures */
static void play_elapsed(const struct step *step) {
    struct mgpu_elapsed found = {0}, (*ask)(void *, void *, void *);
    *(void **)&ask = dlsym(RTLD_DEFAULT, "mgpuEventElapsedTime");
    if (ask != NULL)
        (void)ask(NULL, NULL, NULL); /* after this call, new events have timing */
    void *start = mgpuEventCreate(), *stop = mgpuEventCreate();
    mgpuEventRecord(start, STREAM(1));
    mgpuEventRecord(stop, STREAM(1));
    mgpuEventSynchronize(stop);
    if (ask != NULL && ARGUMENT(0) == 0)
        found = ask(start, stop, STREAM(1));
    else if (ask != NULL)
        found.error = ask(&found.milliseconds, start, stop).error;
    say(step, (int)found.error == 0 && found.milliseconds >= 0 ? "a time" : "no time");
    mgpuEventDestroy(start);
    mgpuEventDestroy(stop);
}

/* ---- the steps ---- */

void more_reset(void) {
    for (int kind = 0; kind < CROWD_KINDS; ++kind)
        crowds[kind].count = 0;
}

const struct step_kind limit_steps[] = {
    {"crowd", play_crowd}, {"uncrowd", play_uncrowd},
    {"busy", play_busy},   {"elapsed", play_elapsed},
    {NULL, NULL},
};
