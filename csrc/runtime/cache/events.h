/* The events that mgpuEventCreate handed out: used again, but never with a past.
 *
 * Each thread keeps a few spare ones in slots of its own. A thread that only creates or only
 * destroys exchanges them with the others through a common pool. A hit takes no lock. */
#ifndef MGPU_RT_EVENTS_H
#define MGPU_RT_EVENTS_H

#include "base/abi.h"
#include "base/atomics.h"
#include "base/check.h"
#include "base/proof.h"
#include "cache/thread.h"
#include "cache/types.h"
#include "cache/watch.h"

struct cache;

extern struct handle_map event_map;

static inline hipEvent_t event_handle(const struct event *event) {
    return (hipEvent_t)event->handle.key;
}

static inline int event_state(const struct event *event) {
    return load_acquire(&event->state);
}

/* The rows of the table in types.h that are a compare-and-swap. */
CHECKS bool event_may_change(int from, int to) {
    switch (from) {
    case EVENT_SPARE:
        return to == EVENT_PAST || to == EVENT_GONE;
    case EVENT_PAST:
        return to != EVENT_PAST;
    default:
        return from == EVENT_LIVE && (to == EVENT_SPARE || to == EVENT_GONE);
    }
}

static inline bool event_change(struct event *event, int from, int to) {
    CHECK(event_may_change(from, to));
    return cas_acq_rel(&event->state, &from, to);
}

static inline bool event_is_held(const struct event *event) {
    return event_state(event) >= EVENT_PAST;
}

/* Whether HIP has an event still that the program does not hold. */
static inline bool event_is_kept(const struct event *event) {
    return device_kept(event->device) &&
           PROOF(reset_has_not_ended_the_event, event_state(event) != EVENT_GONE);
}

/* The entry of an event that the runtime knows; NULL for any other handle. */
static inline struct event *event_known(hipEvent_t handle) {
    struct event *event = handle_find(&event_map, handle);
    return event && event_state(event) != EVENT_GONE ? event : NULL;
}

/* Settles whether events are kept, before the first is made. */
void event_cache_open(void);

/* False if MGPU_RT_CACHE leaves events out. False on AMD's HIP from 6 on too, as nobody can ask it
 * whether the last record is complete. MGPU_RT_EXCLUSIVE=on needs no such question. */
bool event_cache_serves(void);

/* The flags of a new event: stock's hipEventDisableTiming, or hipEventDefault once the process asks
 * for the time between events. It asks if an object of it imports mgpuEventElapsedTime, has one of
 * its own, or has called ours. Looks at objects that are new since the last call: 0.1 µs if there
 * are none, else 20 ns a name that some object imports. */
unsigned event_flags(void);

/* A module is new, and perhaps the library that brings it: that may ask for times, too. */
void event_look_for_timer(void);

/* The process asks for times. From here on no event is kept: a spare one has no timing, or has the
 * time of an earlier owner's record. So each event costs two calls of HIP's. */
void event_time_all(void);

/* A spare event of this device for the program, whose last record is complete by HIP's word; NULL
 * if there is none. */
struct event *event_take(struct thread *thread, int device);

/* Enters an event that HIP has just made for the program, one with timing too. Without memory only
 * HIP knows it. */
void event_enter(hipEvent_t handle, int device);

/* The program destroys it: it is spare. False if the program does not hold it. */
bool event_release(struct thread *thread, struct event *event);

/* The program destroys it, and HIP gets it: from here on nothing is known of its handle. False if
 * the program does not hold it. */
bool event_leave(struct event *event);

/* HIP has recorded it for the program. */
void event_note_record(struct event *event);

extern const struct cache event_cache;

#endif
