/* The order that the program's streams, events and waits give to its launches, copies and fills.
 *
 * Each of these is an op. An op is ordered after its stream's earlier ops and waits, and after the
 * waits of the host before the call. Vector clocks describe that: an op is the n-th of its stream's
 * slot, and a clock tells how many of each slot are over.
 *
 * All threads of the host share one clock, as their waits for each other are unknown. An op of the
 * null stream comes after all earlier ops, and before all later ones. An op of a stream that the
 * program did not create here counts as one of the null stream. A destroyed stream's slot serves
 * again once the host has waited for its ops.
 *
 * Every function may be called from any thread. */
#ifndef SOFTGPU_CHECK_ORDER_H
#define SOFTGPU_CHECK_ORDER_H

#include "place.h"

#include <stdbool.h>
#include <stdint.h>

enum { SOFTGPU_SLOTS = 256 };

struct softgpu_clock {
    uint32_t seen[SOFTGPU_SLOTS];   /* by slot: the number of its ops that are over */
    uint32_t strict[SOFTGPU_SLOTS]; /* the ops that a wait has ended; a free is no wait */
};

enum softgpu_op_kind { SOFTGPU_OP_UNKNOWN, SOFTGPU_OP_LAUNCH, SOFTGPU_OP_COPY, SOFTGPU_OP_FILL };

/* The known facts of an op. The op's number counts from 1; ops of kind UNKNOWN are ordered with all
 * others. */
struct softgpu_op {
    enum softgpu_op_kind kind;
    uint16_t slot;
    uint32_t count; /* the number of the slot's ops up to this one */
    unsigned
        stream; /* the stream's number, counted from 1; 0: the null stream, or an unknown one */
    struct softgpu_place place;
    /* For a launch that the device has begun: the kernel's descriptor, its code, its target. */
    uint64_t object, entry;
    uint32_t target;
};

/* ---- ops ---- */

/* Begins an op on a stream. Returns the op's number, and sets `clock` to the ops that were over
 * before it began. No other op begins until softgpu_order_end. 0: the order is no longer
 * followed. */
uint32_t softgpu_order_begin(enum softgpu_op_kind kind, void *stream,
                             const struct softgpu_place *place, struct softgpu_clock *clock);
void softgpu_order_end(void);
/* Returns the number of a launch that did not come through the program's calls. */
uint32_t softgpu_order_unknown(void);
/* Returns the op; NULL if it is not known. The returned address stays valid. */
struct softgpu_op *softgpu_op_at(uint32_t number);
/* Returns whether an op is over according to a clock. */
bool softgpu_is_over(uint32_t number, const struct softgpu_clock *clock);
/* Returns whether the host has waited for an op; `strictly`: by a wait, and not by a free. */
bool softgpu_host_awaited(uint32_t number, bool strictly);
/* Notes that a report has named an op that is not waited for. From here on the op counts as over,
 * so that one missing wait is one report. */
void softgpu_order_reported(uint32_t number);
/* Gives up the order of ops: from here on too little is known, so no op is ordered. */
void softgpu_order_lost(void);

/* Sets `clock` to the ops that are over when a block is freed in the order of a stream. */
void softgpu_order_of_free(void *stream, struct softgpu_clock *clock);
/* Notes that the host waits for all called ops, as HIP's free does for the device. `strictly`: a
 * wait that the program asked for. */
void softgpu_order_wait_all(bool strictly);
/* Notes that the host has waited for an op and all ops before it, as HIP's copies to pageable
 * memory do. */
void softgpu_order_wait_op(const struct softgpu_clock *clock, uint32_t number);

/* ---- streams and events ----
 *
 * Handles that were created and destroyed elsewhere are unknown. */
enum softgpu_handle { SOFTGPU_UNKNOWN, SOFTGPU_KNOWN, SOFTGPU_DESTROYED };

/* The facts of a stream or an event, for a report. */
struct softgpu_object {
    enum softgpu_handle state;
    unsigned number; /* number among its kind, counted from 1 */
    bool recorded;   /* the event was recorded at least once */
    struct softgpu_place made, ended;
};

void softgpu_stream_made(void *stream, const struct softgpu_place *place);
void softgpu_stream_ends(void *stream, const struct softgpu_place *place);
struct softgpu_object softgpu_stream_find(void *stream);
void softgpu_event_made(void *event, const struct softgpu_place *place);
void softgpu_event_ends(void *event, const struct softgpu_place *place);
struct softgpu_object softgpu_event_find(void *event);

void softgpu_event_recorded(void *event, void *stream);
void softgpu_stream_waits(void *stream, void *event);
/* Sets `clock` to the ops for which a wait for a stream or an event waits. */
void softgpu_clock_of_stream(void *stream, struct softgpu_clock *clock);
void softgpu_clock_of_event(void *event, struct softgpu_clock *clock);
void softgpu_host_waited(const struct softgpu_clock *clock);

/* Calls a function for each living stream and event. */
void softgpu_each_living(void (*visit)(const char *what, const struct softgpu_object *object));

#endif
