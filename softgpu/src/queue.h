/* Declares a queue and the thread that drains the queue. This header is internal to queue.c,
 * queue_wait.c, packet.c and sdma.c. */
#ifndef SOFTGPU_QUEUE_H
#define SOFTGPU_QUEUE_H

#include "doorbell.h"
#include "hsa_signal.h"
#include "thunk.h"

#include <pthread.h>

union softgpu_packet {
    _Atomic uint16_t header;
    struct softgpu_dispatch_packet dispatch;
    uint64_t words[8];
};
_Static_assert(sizeof(union softgpu_packet) == 64, "an AQL packet has 64 bytes");

struct softgpu_queue {
    uint32_t node;
    char *ring;
    uint64_t ring_bytes; /* a power of two */
    struct softgpu_doorbell doorbell;
    _Atomic uint32_t state;
    pthread_t thread;
    /* AQL queues: */
    _Atomic uint64_t *read_index;
    struct softgpu_amd_queue *amd;
    /* SDMA queues: the indices count bytes since the queue's creation. */
    _Atomic uint64_t sdma_write_index, sdma_read_index;
};

enum softgpu_queue_state { SOFTGPU_QUEUE_RUNS, SOFTGPU_QUEUE_PAUSED, SOFTGPU_QUEUE_STOPS };

/* How long a thread has waited for one event; initially zero. */
struct softgpu_patience {
    uint64_t since;
    uint32_t sleep_ns;
};

/* Waits a short time, after which the caller checks again for a change by another thread. Spins
 * first, because most waits are short, then sleeps longer each time. Returns false when the queue
 * must stop. */
bool softgpu_queue_wait(struct softgpu_queue *queue, struct softgpu_patience *patience);

/* Waits for the ring's next entry. After a while the thread sleeps until HIP rings the doorbell. If
 * HIP has already rung the doorbell for the entry (`rung`), the thread only polls the ring. When
 * the entry has arrived, the caller must call softgpu_queue_found. */
bool softgpu_queue_idle(struct softgpu_queue *queue, struct softgpu_patience *patience, bool rung);
void softgpu_queue_found(struct softgpu_queue *queue);

/* Reports a fault of the queue's present work. The queue then executes nothing more. Returns once
 * the runtime has reacted by pausing the queue. If the runtime does not react within a few seconds,
 * aborts the process, because continuing with wrong values would be worse. */
void softgpu_queue_fail(struct softgpu_queue *queue, const struct softgpu_fault *fault);

/* Executes the ring's entries until the queue must stop. */
void softgpu_drain_aql(struct softgpu_queue *queue);
void softgpu_drain_sdma(struct softgpu_queue *queue);

#endif
