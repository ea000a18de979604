/* A bounded queue with many writers and one reader, in memory that the manager shares.
 *
 * A writer takes the next number, writes the event to the number's cell, and marks the cell as
 * written. A writer never waits, not even for a writer that was stopped before it marked a cell.
 * The manager cannot read past an unmarked cell. The ring then fills up, and the manager reads the
 * tables instead. */
#include "telemetry/publish.h"
#include "atomics.h"
#include "likely.h"
#include "proof.h"
#include "telemetry/channel.h"
#include "telemetry/counters.h"

/* NULL unless a manager is listening. The channel stays mapped until the process ends. */
static struct channel *listening;

void publish_to(struct channel *channel) {
    store_release(&listening, channel);
}

enum { TRIES = 64 }; /* all fail if other writers are faster, or if the ring is corrupt */

/* Returns the cell for the next event, and stores the event's number; NULL if the ring is full, or
 * if all attempts fail. */
static struct channel_cell *take_place(struct channel *channel, uint64_t *number) {
    uint64_t next = load_relaxed(&channel->next);
    for (int i = 0; i < TRIES; i++) {
        struct channel_cell *cell = &channel->cells[next % CHANNEL_EVENTS];
        const int64_t lead = (int64_t)(load_acquire(&cell->turn) - next);
        if (lead < 0)
            return NULL;
        if (lead == 0 && cas_weak_relaxed(&channel->next, &next, next + 1)) {
            *number = next;
            return cell;
        }
        if (lead > 0)
            next = load_relaxed(&channel->next);
    }
    return NULL;
}

/* Wakes a sleeping manager, at most once during each sleep. */
static void wake(struct channel *channel) {
    if (load_seq_cst(&channel->asleep) && exchange_seq_cst(&channel->asleep, 0))
        channel_ring(&channel->asleep);
}

void publish_event(enum published what, const void *handle, size_t bytes, int device) {
    struct channel *channel = load_acquire(&listening);
    uint64_t number;
    if (LIKELY(!channel))
        return;
    struct channel_cell *cell = take_place(channel, &number);
    if (cell) {
        cell->event = (struct channel_event){.time = clock_ns(),
                                             .handle = (uintptr_t)handle,
                                             .bytes = bytes,
                                             .kind = (int32_t)what,
                                             .device = device};
        store_seq_cst(&cell->turn, number + 1);
    } else {
        PROOF_STEP(lost_events_are_counted, fetch_add_seq_cst(&channel->dropped_events[what], 1));
    }
    wake(channel);
}
