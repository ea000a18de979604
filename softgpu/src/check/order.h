/* The order that the program's streams, events and waits give to its launches, copies and fills.
 *
 * Each of these is an op. An op is ordered after its stream's earlier ops and waits, and after the
 * waits of the host before the call. Vector clocks say so: an op is the n-th of its stream's slot,
 * and a clock says how many of each slot are over.
 *
 * All threads of the host have one clock, as nothing is known of how they wait for each other. An
 * op of the null stream comes after all earlier ops, and before all later ones. So does an op of a
 * stream that the program did not create here. A destroyed stream's slot serves again once the host
 * has waited for its ops.
 *
 * Every function may be called from any thread. */
#ifndef SOFTGPU_CHECK_ORDER_H
#define SOFTGPU_CHECK_ORDER_H

#include "place.h"

#include <stdbool.h>
#include <stdint.h>

enum { SOFTGPU_SLOTS = 256 };

struct softgpu_clock {
    uint32_t seen[SOFTGPU_SLOTS];   /* by slot: so many ops of it are over */
    uint32_t strict[SOFTGPU_SLOTS]; /* those that a wait ended, which a free is not */
};

enum softgpu_op_kind { SOFTGPU_OP_UNKNOWN, SOFTGPU_OP_LAUNCH, SOFTGPU_OP_COPY, SOFTGPU_OP_FILL };

/* An op as far as it is known. Its number is from 1; ops of kind UNKNOWN are ordered with all. */
struct softgpu_op {
    enum softgpu_op_kind kind;
    uint16_t slot;
    uint32_t count;  /* of the slot's ops, with this one */
    unsigned stream; /* its number, from 1; 0: the null stream, or one of which nothing is known */
    struct softgpu_place place;
    /* A launch's, once the device has begun it: the kernel's descriptor, its code, its target. */
    uint64_t object, entry;
    uint32_t target;
};

/* ---- ops ---- */

/* Begins an op on a stream. Returns its number, and sets `clock` to what was over before it began.
 * From here on to softgpu_order_end no other op begins. 0: order is not looked at any more. */
uint32_t softgpu_order_begin(enum softgpu_op_kind kind, void *stream,
                             const struct softgpu_place *place, struct softgpu_clock *clock);
void softgpu_order_end(void);
/* Returns the number of a launch that did not come through the program's calls. */
uint32_t softgpu_order_unknown(void);
/* Returns the op; NULL if nothing is known of it. Its address stays. */
struct softgpu_op *softgpu_op_at(uint32_t number);
/* Returns whether an op is over by a clock. */
bool softgpu_is_over(uint32_t number, const struct softgpu_clock *clock);
/* Returns whether the host has waited for an op; `strictly`: by a wait, which a free is not. */
bool softgpu_host_awaited(uint32_t number, bool strictly);
/* Notes that a report has said that an op is not waited for. From here on the op counts as over, so
 * that one missing wait is one report. */
void softgpu_order_reported(uint32_t number);
/* Gives up the order of ops: no op is ordered by what follows, as too little is known. */
void softgpu_order_lost(void);

/* Sets `clock` to what is over when a block is freed in the order of a stream. */
void softgpu_order_of_free(void *stream, struct softgpu_clock *clock);
/* Notes that the host waits for all that was called, as HIP's free does for the device. `strictly`:
 * a wait that the program asked for. */
void softgpu_order_wait_all(bool strictly);
/* Returns the host has waited for an op and what was before it, as HIP's copies to pageable memory
 * do. */
void softgpu_order_wait_op(const struct softgpu_clock *clock, uint32_t number);

/* ---- streams and events ----
 *
 * Handles that were created and destroyed elsewhere are unknown. */
enum softgpu_handle { SOFTGPU_UNKNOWN, SOFTGPU_KNOWN, SOFTGPU_DESTROYED };

/* A stream or an event, for a report. */
struct softgpu_object {
    enum softgpu_handle state;
    unsigned number; /* of its kind, from 1 */
    bool recorded;   /* an event that was, at least once */
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
/* Sets `clock` to what a wait of the host for a stream or an event will end. */
void softgpu_clock_of_stream(void *stream, struct softgpu_clock *clock);
void softgpu_clock_of_event(void *event, struct softgpu_clock *clock);
void softgpu_host_waited(const struct softgpu_clock *clock);

/* Calls a function for each stream and each event that lives. */
void softgpu_each_living(void (*visit)(const char *what, const struct softgpu_object *object));

#endif
