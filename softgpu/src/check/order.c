#include "order.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* The latest stream or event that had this handle. The stream or event may be destroyed. */
struct object {
    void *handle;
    struct object *next;
    struct softgpu_object known;
    uint16_t slot; /* the slot of a stream that is not destroyed */
    /* For a stream: the ops that are over before the stream's next op. For an event: the ops that
     * must be over before the event is complete. */
    struct softgpu_clock clock;
};

enum { BUCKETS = 1024, OPS_A_CHUNK = 4096, MOST_CHUNKS = 65536, NULL_SLOT = 0 };

struct table {
    struct object *buckets[BUCKETS];
    unsigned made;
};

static pthread_mutex_t ops_lock = PTHREAD_MUTEX_INITIALIZER; /* held while HIP starts an op */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;     /* guards all data below */
static struct table streams, events;
static struct softgpu_clock last;        /* by slot: the number of ops so far */
static struct softgpu_clock host;        /* the ops that the host has waited for */
static struct softgpu_clock fence;       /* the null stream's last op, and the ops before that op */
static uint32_t reported[SOFTGPU_SLOTS]; /* the ops that count as over after a report */
static struct object *owners[SOFTGPU_SLOTS];
static struct softgpu_op *chunks[MOST_CHUNKS];
static uint32_t op_count;
static bool lost;

/* ---- clocks ---- */

static void join(struct softgpu_clock *to, const struct softgpu_clock *from) {
    for (unsigned waits = 0; waits < SOFTGPU_WAITS; waits++)
        for (unsigned n = 0; n < SOFTGPU_SLOTS; n++) {
            uint32_t *over = &to->over[waits][n];
            *over = *over > from->over[waits][n] ? *over : from->over[waits][n];
        }
}

/* Notes that a slot's ops with numbers up to `count` are over after such a wait. */
static void advance(struct softgpu_clock *clock, enum softgpu_waits waits, unsigned slot,
                    uint32_t count) {
    for (unsigned n = waits; n < SOFTGPU_WAITS; n++)
        if (clock->over[n][slot] < count)
            clock->over[n][slot] = count;
}

/* ---- handles ---- */

static struct object **bucket_of(struct table *table, void *handle) {
    return &table->buckets[((uintptr_t)handle >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 54];
}

static struct object *find(struct table *table, void *handle) {
    struct object *object = *bucket_of(table, handle);
    while (object && object->handle != handle)
        object = object->next;
    return object;
}

static struct object *find_living(struct table *table, void *handle) {
    struct object *object = find(table, handle);
    return object && object->known.state == SOFTGPU_KNOWN ? object : NULL;
}

/* Creates an object, which replaces an earlier object with an equal handle. Returns NULL if memory
 * is exhausted. */
static struct object *make(struct table *table, void *handle, const struct softgpu_place *place) {
    struct object **bucket = bucket_of(table, handle), *object = find(table, handle);
    if (!object) {
        object = calloc(1, sizeof *object);
        if (!object)
            return NULL;
        object->next = *bucket;
        *bucket = object;
    }
    const struct softgpu_object before = object->known;
    object->handle = handle;
    object->known =
        (struct softgpu_object){.state = SOFTGPU_KNOWN,
                                .number = ++table->made,
                                .made = *place,
                                .earlier = before.number ? before.earlier + 1 : 0,
                                .first = before.earlier ? before.first : before.number,
                                .before = before.number,
                                .ended_first = before.earlier ? before.ended_first : before.ended,
                                .ended_before = before.ended};
    memset(&object->clock, 0, sizeof object->clock);
    return object;
}

static struct softgpu_object describe(struct table *table, void *handle) {
    pthread_mutex_lock(&lock);
    const struct object *object = find(table, handle);
    struct softgpu_object known = {0};
    if (object)
        known = object->known;
    pthread_mutex_unlock(&lock);
    return known;
}

/* ---- streams ---- */

/* Returns the next free slot after the slot taken last, or NULL_SLOT. `waited`: the ops that count
 * as over. */
static unsigned find_slot(const uint32_t *waited) {
    static unsigned taken = NULL_SLOT;
    for (unsigned n = 0; n < SOFTGPU_SLOTS - 1; n++) {
        unsigned slot = 1 + (taken + n) % (SOFTGPU_SLOTS - 1);
        if (!owners[slot] && waited[slot] >= last.over[SOFTGPU_STOCK][slot])
            return taken = slot;
    }
    return NULL_SLOT;
}

/* A wait for a stream counts for its slot's earlier ops. So a slot whose ops the program has not
 * explicitly waited for is taken only if no other is free. Then the oldest such slot is taken. A
 * stream that gets no slot uses the null stream's slot. The checker then reports no race of this
 * stream. */
static uint16_t take_slot(struct object *stream) {
    unsigned slot = find_slot(host.over[SOFTGPU_EXPLICIT]);
    if (slot == NULL_SLOT)
        slot = find_slot(host.over[SOFTGPU_STOCK]);
    if (slot != NULL_SLOT)
        owners[slot] = stream;
    return (uint16_t)slot;
}

static void give_slot(struct object *stream) {
    if (owners[stream->slot] == stream)
        owners[stream->slot] = NULL;
    stream->slot = NULL_SLOT;
}

bool softgpu_stream_made(void *handle, const struct softgpu_place *place) {
    pthread_mutex_lock(&lock);
    struct object *old = find(&streams, handle);
    if (old)
        give_slot(old);
    struct object *stream = make(&streams, handle, place);
    const unsigned slot = stream ? take_slot(stream) : NULL_SLOT;
    if (stream)
        stream->slot = (uint16_t)slot;
    pthread_mutex_unlock(&lock);
    return slot != NULL_SLOT;
}

void softgpu_stream_ends(void *handle, const struct softgpu_place *place) {
    pthread_mutex_lock(&lock);
    struct object *stream = find_living(&streams, handle);
    if (stream) {
        give_slot(stream);
        stream->known.state = SOFTGPU_DESTROYED;
        stream->known.ended = *place;
    }
    pthread_mutex_unlock(&lock);
}

struct softgpu_object softgpu_stream_find(void *stream) {
    return describe(&streams, stream);
}

/* ---- ops ---- */

static struct softgpu_op *op_at(uint32_t number) {
    struct softgpu_op *chunk =
        __atomic_load_n(&chunks[number / OPS_A_CHUNK % MOST_CHUNKS], __ATOMIC_ACQUIRE);
    return number && chunk ? &chunk[number % OPS_A_CHUNK] : NULL;
}

struct softgpu_op *softgpu_op_at(uint32_t number) {
    return op_at(number);
}

static uint32_t make_op(const struct softgpu_op *op) {
    uint32_t number = op_count + 1;
    struct softgpu_op **chunk = &chunks[number / OPS_A_CHUNK % MOST_CHUNKS];
    if (number == 0 || number / OPS_A_CHUNK >= MOST_CHUNKS)
        return 0;
    if (!*chunk) {
        struct softgpu_op *made = calloc(OPS_A_CHUNK, sizeof *made);
        if (!made)
            return 0;
        __atomic_store_n(chunk, made, __ATOMIC_RELEASE);
    }
    op_count = number;
    (*chunk)[number % OPS_A_CHUNK] = *op;
    return number;
}

/* Sets `clock` to the ops that are over before the next op of a stream. NULL stands for an unknown
 * stream. */
static void before_next(const struct object *stream, struct softgpu_clock *clock) {
    if (!stream || stream->slot == NULL_SLOT) {
        *clock = last;
        return;
    }
    *clock = stream->clock;
    join(clock, &host);
    join(clock, &fence);
}

/* Makes a stream's next op, and sets `after` to the ops that are over when this op is. */
static uint32_t next_op(enum softgpu_op_kind kind, const struct object *stream,
                        const struct softgpu_place *place, struct softgpu_clock *after) {
    uint16_t slot = stream ? stream->slot : NULL_SLOT;
    uint32_t count = last.over[SOFTGPU_STOCK][slot] + 1;
    advance(&last, SOFTGPU_EXPLICIT, slot, count);
    advance(after, SOFTGPU_EXPLICIT, slot, count);
    const struct softgpu_op op = {.kind = kind,
                                  .slot = slot,
                                  .count = count,
                                  .stream = stream ? stream->known.number : 0,
                                  .place = *place};
    return lost ? 0 : make_op(&op);
}

uint32_t softgpu_order_begin(enum softgpu_op_kind kind, void *handle,
                             const struct softgpu_place *place, struct softgpu_clock *clock) {
    pthread_mutex_lock(&ops_lock);
    pthread_mutex_lock(&lock);
    struct object *stream = find_living(&streams, handle);
    before_next(stream, clock);
    struct softgpu_clock *after = !stream || stream->slot == NULL_SLOT ? &fence : &stream->clock;
    *after = *clock;
    uint32_t number = next_op(kind, stream, place, after);
    pthread_mutex_unlock(&lock);
    return number;
}

uint32_t softgpu_order_alloc(void *handle, const struct softgpu_place *place) {
    pthread_mutex_lock(&lock);
    struct object *stream = find_living(&streams, handle);
    bool ordered = stream && stream->slot != NULL_SLOT;
    uint32_t number = ordered ? next_op(SOFTGPU_OP_ALLOC, stream, place, &stream->clock) : 0;
    pthread_mutex_unlock(&lock);
    return number;
}

void softgpu_order_end(void) {
    pthread_mutex_unlock(&ops_lock);
}

uint32_t softgpu_order_unknown(void) {
    pthread_mutex_lock(&lock);
    uint32_t number = make_op(&(struct softgpu_op){.kind = SOFTGPU_OP_UNKNOWN});
    pthread_mutex_unlock(&lock);
    return number;
}

static bool is_over(uint32_t number, const uint32_t *over) {
    const struct softgpu_op *op = op_at(number);
    return !op || op->kind == SOFTGPU_OP_UNKNOWN || op->count <= over[op->slot] ||
           __atomic_load_n(&lost, __ATOMIC_RELAXED);
}

bool softgpu_is_over(uint32_t number, const struct softgpu_clock *clock, enum softgpu_waits waits) {
    const struct softgpu_op *op = op_at(number);
    return is_over(number, clock->over[waits]) ||
           op->count <= __atomic_load_n(&reported[op->slot], __ATOMIC_RELAXED);
}

bool softgpu_host_awaited(uint32_t number, enum softgpu_waits waits) {
    pthread_mutex_lock(&lock);
    bool over = is_over(number, host.over[waits]);
    pthread_mutex_unlock(&lock);
    return over;
}

void softgpu_order_reported(uint32_t number, enum softgpu_waits waits) {
    pthread_mutex_lock(&lock);
    const struct softgpu_op *op = op_at(number);
    const struct softgpu_clock before = host;
    if (op) {
        advance(&host, SOFTGPU_EXPLICIT, op->slot, op->count);
        if (owners[op->slot])
            join(&host, &owners[op->slot]->clock); /* the stream's earlier ops are also over */
        memcpy(host.over, before.over, waits * sizeof *host.over);
        /* The op that runs now began with an older clock. */
        if (waits != SOFTGPU_STOCK)
            __atomic_store_n(&reported[op->slot], host.over[SOFTGPU_LIBRARY][op->slot],
                             __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&lock);
}

void softgpu_order_lost(void) {
    __atomic_store_n(&lost, true, __ATOMIC_RELAXED);
}

void softgpu_order_of_free(void *handle, struct softgpu_clock *clock) {
    pthread_mutex_lock(&lock);
    const struct object *stream = find(&streams, handle);
    if (stream && stream->known.state == SOFTGPU_DESTROYED) {
        *clock = stream->clock; /* the stream's earlier ops are over before the free */
        join(clock, &host);
        join(clock, &fence);
    } else {
        before_next(stream, clock);
    }
    pthread_mutex_unlock(&lock);
}

void softgpu_order_wait_all(enum softgpu_waits waits) {
    pthread_mutex_lock(&lock);
    for (unsigned n = waits; n < SOFTGPU_WAITS; n++)
        memcpy(host.over[n], last.over[n], sizeof host.over[n]);
    pthread_mutex_unlock(&lock);
}

void softgpu_order_wait_op(const struct softgpu_clock *clock, uint32_t number) {
    pthread_mutex_lock(&lock);
    const struct softgpu_op *op = op_at(number);
    for (unsigned n = 0; n < SOFTGPU_SLOTS; n++)
        advance(&host, SOFTGPU_LIBRARY, n, clock->over[SOFTGPU_LIBRARY][n]);
    if (op)
        advance(&host, SOFTGPU_LIBRARY, op->slot, op->count);
    pthread_mutex_unlock(&lock);
}

/* ---- events and waits ---- */

void softgpu_event_made(void *event, const struct softgpu_place *place) {
    pthread_mutex_lock(&lock);
    (void)make(&events, event, place);
    pthread_mutex_unlock(&lock);
}

void softgpu_event_ends(void *handle, const struct softgpu_place *place) {
    pthread_mutex_lock(&lock);
    struct object *event = find_living(&events, handle);
    if (event) {
        event->known.state = SOFTGPU_DESTROYED;
        event->known.ended = *place;
    }
    pthread_mutex_unlock(&lock);
}

struct softgpu_object softgpu_event_find(void *event) {
    return describe(&events, event);
}

void softgpu_event_recorded(void *event, void *stream) {
    pthread_mutex_lock(&lock);
    struct object *object = find_living(&events, event);
    if (object) {
        object->known.recorded = true;
        before_next(find_living(&streams, stream), &object->clock);
    }
    pthread_mutex_unlock(&lock);
}

void softgpu_stream_waits(void *handle, void *event) {
    pthread_mutex_lock(&lock);
    struct object *stream = find_living(&streams, handle);
    const struct object *object = find_living(&events, event);
    const struct softgpu_clock *awaited = object ? &object->clock : &last;
    join(stream && stream->slot != NULL_SLOT ? &stream->clock : &fence, awaited);
    pthread_mutex_unlock(&lock);
}

void softgpu_clock_of_stream(void *handle, struct softgpu_clock *clock) {
    pthread_mutex_lock(&lock);
    const struct object *stream = find_living(&streams, handle);
    *clock = stream && stream->slot != NULL_SLOT ? stream->clock : last;
    pthread_mutex_unlock(&lock);
}

void softgpu_clock_of_event(void *handle, struct softgpu_clock *clock) {
    pthread_mutex_lock(&lock);
    const struct object *event = find_living(&events, handle);
    *clock = event ? event->clock : last;
    pthread_mutex_unlock(&lock);
}

void softgpu_host_waited(const struct softgpu_clock *clock) {
    pthread_mutex_lock(&lock);
    join(&host, clock);
    pthread_mutex_unlock(&lock);
}

static void visit_all(struct table *table, const char *what,
                      void (*visit)(const char *, const struct softgpu_object *)) {
    for (unsigned n = 0; n < BUCKETS; n++)
        for (const struct object *object = table->buckets[n]; object; object = object->next)
            if (object->known.state == SOFTGPU_KNOWN)
                visit(what, &object->known);
}

void softgpu_each_living(void (*visit)(const char *what, const struct softgpu_object *object)) {
    pthread_mutex_lock(&lock);
    visit_all(&streams, "stream", visit);
    visit_all(&events, "event", visit);
    pthread_mutex_unlock(&lock);
}
