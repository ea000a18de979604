/* Events: HIP creates and destroys each, and the library keeps a table of those that the program
 * holds.
 *
 * The table tells events from streams and from other addresses. */
#ifndef MGPU_RT_EVENTS_H
#define MGPU_RT_EVENTS_H

#include "shared/types.h"

/* Returns the event that the program holds under this handle, or NULL. */
struct event *event_held(hipEvent_t handle);

#endif
