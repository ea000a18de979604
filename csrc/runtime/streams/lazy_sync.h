/* MGPU_RT_SYNC=lazy postpones a synchronise that no host code can observe.
 *
 * After a synchronise the host may read memory that the kernels wrote. The library postpones a
 * synchronise if the kernels can have written nothing that the host reads directly. After a
 * postponed synchronise, only a later call of this library could reveal pending work: for example a
 * copy, or a call for another stream. The stream runs its work in order, so later work on the
 * stream needs no wait. Other calls that could reveal pending work wait first. The option serves
 * only programs that hold one stream at a time.
 *
 * The library postpones nothing on a device whose memory the host can read, because a read calls no
 * function of this library. If HIP does not tell whether the host can read the memory, the library
 * postpones nothing either.
 *
 * The program can notice two changes. The host's timers measure only the submission of work. The
 * next call that waits reports a kernel's fault; if no call waits, the exit reports the fault. */
#ifndef MGPU_RT_LAZY_SYNC_H
#define MGPU_RT_LAZY_SYNC_H

#include "streams/streams.h"

/* Returns true if the library need not wait for the stream now. */
bool lazy_put_off(struct stream *stream);

/* Returns true if the library has postponed a synchronise of the stream, and no work was submitted
 * to the stream after that synchronise. */
static inline bool lazy_has_put_off(const struct stream *stream) {
    return load_relaxed(&stream->put_off) == load_acquire(&stream->submitted);
}

/* Set while a synchronise is postponed: a call for another stream then waits first. */
extern bool lazy_pending;

/* Waits for the stream whose synchronise was postponed, unless that stream is `same`. */
void lazy_settle(const struct stream *same);

/* Counts a piece of host memory that kernels can write: 1 for a new piece, -1 for a removed piece.
 */
void lazy_visible(int change);

/* Records that the program loads an image whose kernels may print to the host's stdout. */
void lazy_note_printing(void);

/* Records that the program creates a stream. */
void lazy_note_stream(void);

/* Disables postponement from now on, because of unknown kernels or several streams. */
void lazy_end(void);

#endif
