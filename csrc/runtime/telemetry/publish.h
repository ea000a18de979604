/* Sends the caches' messages to the manager: that HIP has created or released an object.
 *
 * Publishing never blocks and allocates nothing: it is a few stores into a bounded ring. If the
 * ring is full, the event is only counted by kind, and the manager reads the tables again
 * (shared/caches.h). Uses of objects are not published, because the manager reads their counters.
 */
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

/* Publishes an event from any thread, whether or not it holds locks of the runtime. bytes: size of
 * the image or the block, 0 for streams. */
void publish_event(enum published what, const void *handle, size_t bytes, int device);

/* Directs all later events to this channel; NULL: events are dropped. */
struct channel;
void publish_to(struct channel *channel);

#endif
