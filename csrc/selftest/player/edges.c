/* Steps at a program's limits: several devices, handles that HIP uses again, and streams that wait
 * for the program. */
#include "steps.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* device WHO NUMBER */
static void play_device(const struct step *step) {
    const int device = (int)ARGUMENT(1);
    if (ARGUMENT(0) == 0)
        mgpuSetDefaultDevice(device);
    else
        check(step, HIP(hipSetDevice, int)(device));
}

/* ondevice BUFFER: prints the device on which the buffer's memory lies */
static void play_on_device(const struct step *step) {
    struct { /* the first members of hipPointerAttribute_t, which has grown since HIP 5 */
        int type, device;
        char rest[120];
    } found = {.device = -1};
    const int error = HIP(hipPointerGetAttributes, void *, const void *)(&found, BUFFER(0));
    if (error == 0)
        say(step, "on device %d", found.device);
    check(step, error);
}

/* ---- a stream that waits for the program ---- */

struct hold {
    sem_t let;
    long long ms; /* after this time the stream continues even without a release; 0: never */
};

/* The holds, by their numbers. The player never frees a hold, because a stream may reach the hold
 * after the sequence. */
static struct hold *holds[MOST_OBJECTS];

static void wait_to_be_let(void *stream, int error, void *argument) {
    struct hold *hold = argument;
    struct timespec until;
    (void)stream, (void)error;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += hold->ms > 0 ? hold->ms / 1000 : 1 << 20;
    until.tv_nsec += hold->ms % 1000 * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    while (sem_timedwait(&hold->let, &until) != 0 && errno == EINTR)
        continue;
}

/* hold STREAM HOLD MS: the stream's later work begins once the hold is released, or after MS
 * milliseconds */
static void play_hold(const struct step *step) {
    struct hold *hold = holds[ARGUMENT(1)] = malloc(sizeof *hold);
    sem_init(&hold->let, 0, 0);
    hold->ms = ARGUMENT(2);
    check(step, HIP(hipStreamAddCallback, void *, void (*)(void *, int, void *), void *,
                    unsigned)(STREAM(0), wait_to_be_let, hold, 0));
}

/* let HOLD */
static void play_let(const struct step *step) {
    sem_post(&holds[ARGUMENT(0)]->let);
}

/* atwork STREAM */
static void play_at_work(const struct step *step) {
    const int error = HIP(hipStreamQuery, void *)(STREAM(0));
    say(step, "%s", error == NOT_READY ? "at work" : error == 0 ? "done" : "failed");
    HIP(hipGetLastError, void)(); /* in some releases "not ready" remains the last error */
}

/* ---- handles ---- */

enum { BUFFERS, STREAMS, EVENTS, MODULES, FUNCTIONS };

static void **object(long long kind, long long number) {
    void **const all[] = {buffers, streams, events, modules, functions};
    return &all[kind][number];
}

/* same KIND OBJECT OBJECT: prints whether the two objects have the same handle */
static void play_same(const struct step *step) {
    const void *first = *object(ARGUMENT(0), ARGUMENT(1));
    say(step, "%s", first == *object(ARGUMENT(0), ARGUMENT(2)) ? "same" : "different");
}

/* name KIND NEW KIND OBJECT OFFSET: gives object NEW (of the first KIND) the handle of OBJECT (of
 * the second KIND), plus OFFSET bytes */
static void play_name(const struct step *step) {
    char *handle = *object(ARGUMENT(2), ARGUMENT(3));
    *object(ARGUMENT(0), ARGUMENT(1)) = handle + ARGUMENT(4);
}

/* flags STREAM: prints HIP's flags of the stream */
static void play_flags(const struct step *step) {
    unsigned flags = 0;
    check(step, HIP(hipStreamGetFlags, void *, unsigned *)(STREAM(0), &flags));
    say(step, "flags %u", flags);
}

/* managed BUFFER: prints whether HIP moves the buffer's memory between host and device */
static void play_managed(const struct step *step) {
    enum { IS_MANAGED = 8 };
    unsigned is_managed = 0;
    check(step,
          HIP(hipPointerGetAttribute, void *, int, void *)(&is_managed, IS_MANAGED, BUFFER(0)));
    say(step, "%s", is_managed != 0 ? "managed" : "not managed");
}

/* Creates an object for the foreign user. `how`: the flags of a stream, the bytes of a buffer, or
 * an image */
static void make_foreign(const struct step *step, long long kind, long long how, void **made) {
    size_t bytes;
    if (kind == STREAMS)
        check(step, HIP(hipStreamCreateWithFlags, void **, unsigned)(made, (unsigned)how));
    else if (kind == EVENTS)
        check(step, HIP(hipEventCreateWithFlags, void **, unsigned)(made, DISABLE_TIMING));
    else if (kind == MODULES)
        check(step,
              HIP(hipModuleLoadData, void **, const void *)(made, image_content((int)how, &bytes)));
    else if (how > 0)
        check(step, HIP(hipMalloc, void **, size_t)(made, (size_t)how));
    else
        check(step, HIP(hipMallocManaged, void **, size_t, unsigned)(made, (size_t)-how, 1));
}

/* again KIND NEW OBJECT HOW: the foreign user creates objects until one gets the handle that HIP
 * has released. If no object gets the handle, NEW is the last object that was created. */
static void play_again(const struct step *step) {
    enum { MOST = 64 };
    void *made = NULL;
    for (int i = 0; i < MOST && (i == 0 || made != *object(ARGUMENT(0), ARGUMENT(2))); ++i)
        make_foreign(step, ARGUMENT(0), ARGUMENT(3), &made);
    *object(ARGUMENT(0), ARGUMENT(1)) = made;
}

/* nap MS */
static void play_nap(const struct step *step) {
    usleep((useconds_t)ARGUMENT(0) * 1000);
}

/* ---- the steps ---- */

const struct step_kind edge_steps[] = {
    {"ondevice", play_on_device},
    {"device", play_device},
    {"hold", play_hold},
    {"let", play_let},
    {"atwork", play_at_work},
    {"same", play_same},
    {"name", play_name},
    {"again", play_again},
    {"flags", play_flags},
    {"managed", play_managed},
    {"nap", play_nap},
    {NULL, NULL},
};
