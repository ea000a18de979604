/* The events that mgpuEventCreate handed out: used again, but never with an earlier record.
 *
 * Each thread has a few idle events in slots of its own. A thread that only creates or only
 * destroys events exchanges them with other threads through a common pool. A hit takes no lock. */
#ifndef MGPU_RT_EVENTS_H
#define MGPU_RT_EVENTS_H

#include "mgpu.h"
#include "shared/types.h"

struct cache;

static inline hipEvent_t event_handle(const struct event *event) {
    return (hipEvent_t)event->handle.key;
}

/* Returns the event that the program holds by this handle, or NULL. */
struct event *event_held(hipEvent_t handle);

/* Decides whether events are cached, before the first is made. */
void event_cache_open(void);

/* Caches events from here on only if HIP can be asked about them, as MGPU_RT_EXCLUSIVE has
 * ended. */
void event_exclusive_ends(void);

/* Returns the flags of a new event: stock's hipEventDisableTiming, or hipEventDefault once the
 * process asks for the time between events. A process asks if an object of it imports
 * mgpuEventElapsedTime, has one of its own, or has called ours. Looks at objects that are new since
 * the last call: 0.1 µs if there are none, or 20 ns a name that an object imports. */
unsigned event_flags(void);

/* Checks, when a module is new, whether the library that brings it asks for times. */
void event_look_for_timer(void);

/* Inserts an event that HIP has just made for the program, or one with timing. Without memory only
 * HIP knows the event. */
void event_insert(hipEvent_t handle, int device);

/* Removes an event that the program destroys and HIP gets: from here on its handle is unknown.
 * Returns false if the program does not hold it. */
bool event_remove(struct event *event);

extern const struct cache event_cache;

#endif
