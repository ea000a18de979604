/* The events that mgpuEventCreate handed out: used again, but never with a past. */
#ifndef MGPU_RT_EVENT_H
#define MGPU_RT_EVENT_H

#include "base/abi.h"
#include "cache/thread.h"

/* False if the handle is a stream or an event that was destroyed: that was reported as a failure of
 * `expression`, and HIP is not to see it. */
bool event_usable(hipEvent_t event, const char *expression);

/* False if the handle's event was recorded for an earlier owner only: for this one it counts as
 * never recorded, and there is nothing to wait for. */
bool event_recorded(hipEvent_t event);

/* A thread ends: its spare events go to the common pool. */
void event_give_back(struct thread *thread);

/* Destroys the spare events of the common pool and of this thread; returns how many. */
int event_trim(struct thread *thread);

/* From here on nothing is known of any event: HIP was reset, or ends. */
void event_forget_all(void);

#endif
