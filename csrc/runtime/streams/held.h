/* Asks HIP how much work is done of a stream that the program holds.
 *
 * A freed block may wait for a stream on which the program never waits. Some programs fork a stream
 * and never wait for it; other programs wait only for events. Before hipMalloc is called, the
 * library asks HIP about that stream. If HIP reports the stream as idle, all earlier work of the
 * stream is done, even if other code submitted that work. If the stream is busy, the library
 * records an event of its own on the stream. Once the event is complete, all work before the event
 * is done, even if the stream never becomes idle.
 *
 * No question waits, and no question delays other work (docs/questions.md). */
#ifndef MGPU_RT_HELD_H
#define MGPU_RT_HELD_H

#include "shared/types.h"

/* Asks HIP about a stream that the program holds, and records what is done of its work. Returns
 * true if more of the work is known to be done than before. Sets *asked if the library asked HIP.
 * The library does not ask about external streams and null streams, nor while several threads call
 * the library. */
bool stream_query_held(struct stream *stream, bool *asked);

/* Returns true while a thread asks HIP about the stream, so HIP must not destroy the stream. The
 * caller has taken the stream. */
bool stream_is_asked_about(const struct stream *stream);

/* Calls HIP to destroy the library's event of a stream. The caller owns the stream. */
void stream_drop_mark(struct stream *stream);

/* Destroys the events of a device's streams that the program holds. */
void stream_drop_marks(int device);

#endif
