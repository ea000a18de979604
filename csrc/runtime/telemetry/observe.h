/* The caches' messages to the manager, Python's thread: something was got from HIP or given back.
 *
 * Telling never blocks and allocates nothing: a few stores into a bounded ring. When the ring is
 * full the event is only added up by kind, and the manager reads the tables anew
 * (shared/caches.h). Uses are not told, they are counters that the manager may read. */
#ifndef MGPU_RT_OBSERVE_H
#define MGPU_RT_OBSERVE_H

#include <stddef.h>
#include <stdint.h>

enum observed {
    OBSERVED_MODULE_LOADED,
    OBSERVED_MODULE_UNLOADED,
    OBSERVED_STREAM_CREATED,
    OBSERVED_STREAM_DESTROYED,
    OBSERVED_BLOCK_ALLOCATED,
    OBSERVED_BLOCK_FREED,
    OBSERVED_KINDS
};

/* From any thread, with or without locks of the runtime's held. bytes: of the image or the block, 0
 * for streams. */
void observe(enum observed what, const void *handle, size_t bytes, int device);

/* From now on it is told to this channel; NULL: to nobody. */
struct channel;
void observe_listen(struct channel *channel);

#endif
