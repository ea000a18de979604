/* MGPU_RT_SYNC=lazy: a synchronise that no host code can observe is put off.
 *
 * After a synchronise the host may read what the kernels wrote. They may have written nothing that
 * the host reaches by itself. Then only a later call of this library shows the difference: a copy,
 * another stream's work, an event. The stream keeps its order, so what comes on that stream
 * needs no wait; everything else waits first. Only for programs that hold one stream at a time.
 *
 * Two things change. Timers of the host measure the submission. The next call that waits reports a
 * kernel's fault, at the latest at exit. */
#ifndef MGPU_RT_LAZY_SYNC_H
#define MGPU_RT_LAZY_SYNC_H

#include "atomics.h"
#include "modules/image/image.h"
#include "streams/streams.h"

/* Returns true if the stream need not be waited for now. */
bool lazy_put_off(struct stream *stream);

/* Returns true if the stream was synchronised since its last submission, but that was put off. */
static inline bool lazy_has_put_off(const struct stream *stream) {
    return load_relaxed(&stream->put_off) == load_acquire(&stream->submitted);
}

/* True while one was put off: before anything on another stream, it is made up for. */
extern bool lazy_pending;

/* Waits for the stream that was put off, unless it is `same`. */
void lazy_settle(const struct stream *same);

/* Notes that host memory that kernels can write was added (1) or taken away (-1). */
void lazy_visible(int change);

/* Notes that a module is loaded, of an image whose size is known: kernels that print write to the
 * host's stdout. */
void lazy_note_image(const struct image *image);

/* Notes that the program creates a stream. */
void lazy_note_stream(void);

/* Lets every synchronise wait from now on: kernels of which nothing is known, several streams. */
void lazy_end(void);

#endif
