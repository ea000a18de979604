/* The events that mgpuEventCreate handed out: used again, but never with a past.
 *
 * Each thread keeps a few idle ones in slots of its own. A thread that only creates or only
 * destroys exchanges them with the others through a common pool. A hit takes no lock. */
#ifndef MGPU_RT_EVENTS_H
#define MGPU_RT_EVENTS_H

#include "atomics.h"
#include "driver/exclusive.h"
#include "mgpu.h"
#include "proof.h"
#include "shared/thread.h"
#include "shared/types.h"

struct cache;

extern struct handle_map event_map;

static inline hipEvent_t event_handle(const struct event *event) {
    return (hipEvent_t)event->handle.key;
}

/* The kinds of handle that a call may name as an event. */
enum event_kind {
    EVENT_OURS,      /* an event that the program holds */
    EVENT_FOREIGN,   /* nothing is known of it: HIP judges it */
    EVENT_STREAM,    /* a stream that the library knows and HIP has */
    EVENT_DESTROYED, /* an event that the program has destroyed and HIP has */
};

struct event_found {
    enum event_kind kind;
    int state;           /* of the entry */
    struct event *event; /* the entry of the handle, whatever it serves; NULL: there is none */
};

/* Judges a handle. Asks HIP nothing about an event that the program holds. */
struct event_found event_resolve(hipEvent_t handle);

/* The event that the program holds by this handle, or NULL. */
static inline struct event *event_held(hipEvent_t handle) {
    const struct event_found found = event_resolve(handle);
    return found.kind == EVENT_OURS ? found.event : NULL;
}

/* False if HIP knows a record of an earlier owner only. For this owner the event counts as never
 * recorded, and there is nothing to wait for. If others call HIP, the program may have recorded it
 * by a call of its own. HIP knows, and the work of the owner before is over. */
static inline bool event_may_be_recorded(struct event_found found) {
    return !exclusive_hip() || PROOF(owner_has_recorded_the_event, found.state != EVENT_PAST);
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

/* The process asks for times. From here on no event is kept: an idle one has no timing, or has the
 * time of an earlier owner's record. So each event costs two calls of HIP's. */
void event_time_all(void);

/* An idle event of this device for the program, whose last record is complete by HIP's word; NULL
 * if there is none. */
struct event *event_acquire(struct thread *thread, int device);

/* Enters an event that HIP has just made for the program, one with timing too. Without memory only
 * HIP knows it. */
void event_insert(hipEvent_t handle, int device);

/* The program destroys what it names as an event: one that it held (EVENT_OURS) is idle now. */
struct event_found event_release(struct thread *thread, hipEvent_t handle);

/* The program destroys it, and HIP gets it: from here on nothing is known of its handle. False if
 * the program does not hold it. */
bool event_remove(struct event *event);

/* HIP has recorded an event for the program. */
void event_note_record(struct event_found found);

extern const struct cache event_cache;

#endif
