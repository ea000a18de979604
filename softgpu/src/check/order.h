/* Tracks how streams, events and waits order the program's launches, copies, fills and allocations.
 *
 * Each of these is an op. An op is ordered after the earlier ops and waits of its stream, and after
 * the host's earlier waits. Vector clocks describe the order: each op has a number in its stream's
 * slot, and a clock counts each slot's finished ops.
 *
 * All host threads share one clock, because synchronisation between host threads is unknown. An op
 * of the null stream is ordered after all earlier ops and before all later ops. An op counts as an
 * op of the null stream if its stream was not created through the library. A destroyed stream's
 * slot is reused once the host has waited for the stream's ops, preferably by an explicit wait.
 *
 * Every function may be called from any thread. */
#ifndef SOFTGPU_CHECK_ORDER_H
#define SOFTGPU_CHECK_ORDER_H

#include "place.h"

#include <stdbool.h>
#include <stdint.h>

enum { SOFTGPU_SLOTS = 256 };

/* The waits of the host that count. Each includes the earlier ones. */
enum softgpu_waits {
    SOFTGPU_EXPLICIT, /* waits that the program requests */
    SOFTGPU_LIBRARY,  /* waits inside copies: the waits of this library */
    SOFTGPU_STOCK,    /* waits inside frees: the waits of LLVM's own library */
    SOFTGPU_WAITS
};

struct softgpu_clock {
    uint32_t over[SOFTGPU_WAITS][SOFTGPU_SLOTS]; /* by slot: the number of finished ops */
};

enum softgpu_op_kind {
    SOFTGPU_OP_UNKNOWN,
    SOFTGPU_OP_LAUNCH,
    SOFTGPU_OP_COPY,
    SOFTGPU_OP_FILL,
    SOFTGPU_OP_ALLOC
};

/* Describes an op. Op numbers begin at 1; an op of kind UNKNOWN counts as ordered with every other
 * op. */
struct softgpu_op {
    enum softgpu_op_kind kind;
    uint16_t slot;
    uint32_t count;  /* the number of ops in the slot, including this op */
    unsigned stream; /* the stream's number, from 1; 0: the null stream, or an unknown stream */
    struct softgpu_place place;
    /* Known only for a launch that the device has begun: the kernel's descriptor, code address and
     * target. */
    uint64_t object, entry;
    uint32_t target;
};

/* ---- ops ---- */

/* Begins an op on a stream. Returns the op's number, and sets `clock` to the ops that were over
 * before the op began. No other op can begin before softgpu_order_end is called. Returns 0 if the
 * checker no longer follows the order of ops. */
uint32_t softgpu_order_begin(enum softgpu_op_kind kind, void *stream,
                             const struct softgpu_place *place, struct softgpu_clock *clock);
void softgpu_order_end(void);
/* Notes an allocation on a stream, and returns its op's number. Returns 0 if all later work follows
 * the allocation: the stream is the null stream, or unknown. */
uint32_t softgpu_order_alloc(void *stream, const struct softgpu_place *place);
/* Returns a new op number for a launch that did not come from a call of the library. */
uint32_t softgpu_order_unknown(void);
/* Returns the op with a number, or NULL if the op is unknown. The returned address stays valid. */
struct softgpu_op *softgpu_op_at(uint32_t number);
/* Returns whether an op is over according to a clock. */
bool softgpu_is_over(uint32_t number, const struct softgpu_clock *clock, enum softgpu_waits waits);
/* Returns whether the host has waited for an op. */
bool softgpu_host_awaited(uint32_t number, enum softgpu_waits waits);
/* Notes that a report has named an op that the program does not wait for. After the report, the op
 * counts as awaited in this way, so that one missing wait causes only one report. */
void softgpu_order_reported(uint32_t number, enum softgpu_waits waits);
/* Stops ordering ops, because too little is known about their order. */
void softgpu_order_lost(void);

/* Sets `clock` to the ops that are over when a stream-ordered free releases a block. */
void softgpu_order_of_free(void *stream, struct softgpu_clock *clock);
/* Notes that the host has waited for all ops so far. For example, HIP's free waits for the device.
 */
void softgpu_order_wait_all(enum softgpu_waits waits);
/* Notes that the host has waited for an op and all ops before this op. For example, HIP's copy to
 * pageable memory waits for the copy. */
void softgpu_order_wait_op(const struct softgpu_clock *clock, uint32_t number);

/* ---- streams and events ----
 *
 * Handles that were not created through the library are unknown. */
enum softgpu_handle { SOFTGPU_UNKNOWN, SOFTGPU_KNOWN, SOFTGPU_DESTROYED };

/* Describes a stream or an event for a report. */
struct softgpu_object {
    enum softgpu_handle state;
    unsigned number; /* counted separately for streams and for events, from 1 */
    bool recorded;   /* the event was recorded at least once */
    struct softgpu_place made, ended;
    unsigned earlier; /* how many others had this handle before */
    /* The numbers of the first and the last of these others, or 0. */
    unsigned first, before;
    struct softgpu_place ended_first, ended_before;
};

/* Returns false if too many streams exist: the checker then reports no race of this one. */
bool softgpu_stream_made(void *stream, const struct softgpu_place *place);
void softgpu_stream_ends(void *stream, const struct softgpu_place *place);
struct softgpu_object softgpu_stream_find(void *stream);
void softgpu_event_made(void *event, const struct softgpu_place *place);
void softgpu_event_ends(void *event, const struct softgpu_place *place);
struct softgpu_object softgpu_event_find(void *event);

void softgpu_event_recorded(void *event, void *stream);
void softgpu_stream_waits(void *stream, void *event);
/* Sets `clock` to the ops that are over after a wait for a stream or an event. */
void softgpu_clock_of_stream(void *stream, struct softgpu_clock *clock);
void softgpu_clock_of_event(void *event, struct softgpu_clock *clock);
void softgpu_host_waited(const struct softgpu_clock *clock);

/* Calls a function for each stream and event that is not destroyed. */
void softgpu_each_living(void (*visit)(const char *what, const struct softgpu_object *object));

#endif
