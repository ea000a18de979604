/* Caches the events that mgpuEventCreate hands out, so that no event shows an earlier owner's
 * record.
 *
 * Each thread has slots for a few idle events. A thread that only creates or only destroys events
 * exchanges them with other threads through a common pool. A hit takes no lock. */
#ifndef MGPU_RT_EVENTS_H
#define MGPU_RT_EVENTS_H

#include "mgpu.h"
#include "shared/types.h"

struct cache;

static inline hipEvent_t event_handle(const struct event *event) {
    return (hipEvent_t)event->handle.key;
}

/* Returns the event that the program holds under this handle, or NULL. */
struct event *event_held(hipEvent_t handle);

/* Decides whether events are cached, before the first event is created. */
void event_cache_open(void);

/* Handles the end of MGPU_RT_EXCLUSIVE. From then on, the library caches events only if HIP can
 * safely be queried about an event. */
void event_exclusive_ends(void);

/* Returns the flags of a new event: hipEventDisableTiming, which stock also uses, or
 * hipEventDefault once the process asks for the time between events. A process asks for times if
 * its program or a library imports or defines mgpuEventElapsedTime, or has called
 * mgpuEventElapsedTime of this library. Checks only objects that are new since the last call. The
 * check takes 0.1 µs if there are no new objects. Otherwise the check takes 20 ns for each name
 * that a new object imports. */
unsigned event_flags(void);

/* Checks whether the library that contains a new module asks for times. */
void event_look_for_timer(void);

/* Inserts an event that HIP has just created for the program, or an event with timing. If there is
 * no memory for the entry, only HIP knows the event. */
void event_insert(hipEvent_t handle, int device);

/* Removes an event that the program destroys by calling HIP: from here on the event's handle is
 * unknown. Returns false if the program does not hold the event. */
bool event_remove(struct event *event);

extern const struct cache event_cache;

#endif
