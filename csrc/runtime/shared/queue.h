/* Entries in the order in which they were added. The oldest entry leaves first when a cache is over
 * its limit. All functions need tables_lock. A thread without the lock may read whether an entry is
 * in a queue, and which entry of a queue is the newest. */
#ifndef MGPU_RT_QUEUE_H
#define MGPU_RT_QUEUE_H

#include "atomics.h"

struct queue {
    struct queued *oldest, *newest;
};

/* A member of an entry. */
struct queued {
    struct queue *queue; /* NULL: the entry is in no queue; may be read without the lock */
    struct queued *older, *newer;
};

/* Returns the entry of type `type` whose member `member` is at `at`; NULL for NULL. */
#define QUEUE_ENTRY(at, type, member)                                                              \
    ((type *)((at) ? (char *)(at) - offsetof(type, member) : NULL))

/* Removes an entry from its queue; does nothing if the entry is in no queue. */
static inline void queue_remove(struct queued *entry) {
    struct queue *const queue = entry->queue;
    if (!queue)
        return;
    *(entry->older ? &entry->older->newer : &queue->oldest) = entry->newer;
    store_relaxed(entry->newer ? &entry->newer->older : &queue->newest, entry->older);
    store_relaxed(&entry->queue, NULL);
}

/* Adds an entry, which is in no queue, behind `older`. If `older` is NULL, the entry becomes the
 * oldest. */
static inline void queue_add(struct queue *queue, struct queued *entry, struct queued *older) {
    store_relaxed(&entry->queue, queue);
    entry->older = older;
    entry->newer = older ? older->newer : queue->oldest;
    *(entry->older ? &entry->older->newer : &queue->oldest) = entry;
    store_relaxed(entry->newer ? &entry->newer->older : &queue->newest, entry);
}

/* Makes the entries up to `last` the newest, in their order. */
static inline void queue_rotate(struct queue *queue, struct queued *last) {
    if (!last->newer)
        return;
    queue->newest->newer = queue->oldest;
    queue->oldest->older = queue->newest;
    queue->oldest = last->newer;
    queue->oldest->older = NULL;
    last->newer = NULL;
    store_relaxed(&queue->newest, last);
}

#endif
