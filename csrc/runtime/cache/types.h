/* What the caches keep, in which states, and who may move it from which to which.
 *
 * One pattern for all: an entry belongs to whoever has moved its state by a compare-and-swap. Where
 * it lies besides (a thread's slot, a queue, a chain) is a hint: who finds it there takes it by its
 * state, or drops it. State 0 is "gone": HIP has the handle back, or had it taken by a reset, and
 * nothing is known of it. Entries are never freed, so that a hint may be stale. */
#ifndef MGPU_RT_TYPES_H
#define MGPU_RT_TYPES_H

#include "base/abi.h"
#include "base/handles.h"
#include "base/state.h"

#include <stdbool.h>
#include <stdint.h>

struct stream;

/* ---- events ----
 *
 *            from          to     by                  order
 * enter      any, GONE     LIVE   who had HIP make it release
 * take       SPARE         PAST   a create            cas acq_rel
 * put back   PAST          SPARE  who has taken it    cas acq_rel
 * record     PAST          LIVE   the owner           cas acq_rel
 * release    LIVE, PAST    SPARE  a destroy           cas acq_rel
 * give back  PAST          GONE   who has taken it    cas acq_rel
 * forget     any           GONE   who saw the reset   release
 *
 * The program holds it if and only if state >= EVENT_PAST.
 * It lies in the common pool's chain if and only if `queued`. */
enum event_state {
    EVENT_GONE,
    EVENT_SPARE, /* destroyed by the program, and kept */
    EVENT_PAST,  /* held by the program; HIP knows of it what an earlier owner recorded */
    EVENT_LIVE,  /* held by the program; HIP knows of it what this owner did */
};

struct event {
    struct handle handle;
    int state;  /* enum event_state */
    int device; /* read by others as a hint */
    /* Where it was recorded last, if on a stream of the table's: the owner's. */
    struct stream *stream;
    uint64_t mark; /* of that stream, when it was recorded */
    /* The common pool's, under tables_lock. */
    struct event *next_spare;
    bool queued;
};

#endif
