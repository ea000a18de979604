/* MGPU_RT_SYNC=lazy: a synchronise that no host code can observe is put off.
 *
 * After a synchronise the host may read what the kernels wrote. The kernels may have written
 * nothing that the host reaches by itself. Then only a later call of this library shows the
 * difference: a copy, another stream's work, an event. The stream keeps its order, so later work on
 * it needs no wait; all other calls wait first. It serves only programs that hold one stream at a
 * time.
 *
 * The program can notice two changes. Timers of the host measure the submission. A kernel's fault
 * is reported by the next call that waits, at the latest at exit. */
#ifndef MGPU_RT_LAZY_SYNC_H
#define MGPU_RT_LAZY_SYNC_H

#include "atomics.h"
#include "streams/streams.h"

/* Returns true if the stream need not be waited for now. */
bool lazy_put_off(struct stream *stream);

/* Returns true if the stream was synchronised since its last submission, and that was put off. */
static inline bool lazy_has_put_off(const struct stream *stream) {
    return load_relaxed(&stream->put_off) == load_acquire(&stream->submitted);
}

/* True while a synchronise is put off: before a call for another stream it is made up for. */
extern bool lazy_pending;

/* Waits for the stream whose synchronise was put off, unless it is `same`. */
void lazy_settle(const struct stream *same);

/* Notes that the host memory that kernels can write grew by a piece (1) or lost one (-1). */
void lazy_visible(int change);

/* Notes that the program loads an image with kernels that may print: they write to the host's
 * stdout. */
void lazy_note_printing(void);

/* Notes that the program creates a stream. */
void lazy_note_stream(void);

/* Lets every synchronise wait from now on, because of unknown kernels or several streams. */
void lazy_end(void);

#endif
