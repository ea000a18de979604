/* Records which streams follow the work of a stream, because they waited for an event.
 *
 * The program records an event on one stream, and a second stream waits for the event: the second
 * stream has joined the first. Its later work follows the first stream's work up to the record. So
 * its next work may use a block that was freed on the first stream before the record. The host and
 * other streams may use the block once the second stream has done its wait for the event.
 *
 * An event proves a join only while no other code calls HIP, because other code could record the
 * event again. A stream keeps its newest joins; without a join the library asks HIP. */
#ifndef MGPU_RT_JOINS_H
#define MGPU_RT_JOINS_H

#include "shared/thread.h"
#include "shared/types.h"

/* Begins a record of an event on a stream, before HIP is called. Returns a point without a stream
 * if the record can prove nothing. */
struct point join_point(struct stream *stream);

/* Records an event's record that HIP has made on the stream. Completes `point`, which join_point
 * returned. */
void join_recorded(struct stream *stream, struct point *point);

/* Records that the later work of `stream` follows the work before `point`. */
void join_add(struct stream *stream, const struct point *point);

/* Returns true if all work of `stream` before the fence is done, or precedes the next work of
 * `order`. If `order` is NULL, the work must be done. */
bool join_proves(const struct stream *stream, uint64_t fence, const struct stream *order);

/* Returns true if all work of `stream` is done, or precedes the next work of `order`. */
bool join_proves_all(struct stream *stream, const struct stream *order);

#endif
