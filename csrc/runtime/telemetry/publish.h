/* Tells the manager when HIP has created or released an object of a cache.
 *
 * Publishing an event never blocks and allocates no memory, because the events are stored in a
 * bounded ring. If the ring is full, publish_event drops the event and counts the dropped event.
 * The manager then reads the tables again (shared/caches.h). Uses of objects are not published,
 * because the manager reads their counters. */
#ifndef MGPU_RT_PUBLISH_H
#define MGPU_RT_PUBLISH_H

#include <stddef.h>
#include <stdint.h>

enum published {
    MODULE_LOADED,
    MODULE_UNLOADED,
    STREAM_CREATED,
    STREAM_DESTROYED,
    BLOCK_ALLOCATED,
    BLOCK_FREED,
    EVENT_KINDS
};

/* Publishes an event. The calling thread may hold locks of the runtime. bytes: size of the image or
 * the block, 0 for streams. */
void publish_event(enum published what, const void *handle, size_t bytes, int device);

/* Sends all later events to this channel. If `channel` is NULL, later events are dropped. */
struct channel;
void publish_to(struct channel *channel);

#endif
