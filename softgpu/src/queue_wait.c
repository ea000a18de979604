/* Implements the waits of a queue's thread: for changes by other threads, for the doorbell, and for
 * the runtime after a fault. */
#include "queue.h"

#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A queue without work first spins, and then takes longer and longer naps of at most SHORT_NAP_NS.
 * The queue spins only briefly and does not yield. If the queue shares a core with HIP, which also
 * spins, a nap's timer returns the core to the queue within microseconds. A yield would make the
 * queue wait for the scheduler's next tick. With yields, a launch and its wait would take 3 ms
 * instead of 120 us. After IN_USE_NS the queue arms the doorbell. If arming is impossible, the
 * queue continues with naps of up to LONG_NAP_NS. */
enum {
    SPIN_NS = 10 * 1000,
    FIRST_NAP_NS = 10 * 1000,
    SHORT_NAP_NS = 200 * 1000,
    IN_USE_NS = 20 * 1000 * 1000,
    LONG_NAP_NS = 2000 * 1000,
    PAUSES_PER_LOOK = 24,
    LOOK_NS = 100 * 1000 * 1000,
    LOOKS_FOR_ROCR = 50, /* a long limit, because ROCr may react late on a busy machine */
};

static void sleep_while(_Atomic uint32_t *word, uint32_t value, const struct timespec *timeout) {
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, timeout, NULL, 0);
}

static void spin(void) {
    for (int i = 0; i < PAUSES_PER_LOOK; i++)
        __builtin_ia32_pause();
}

static void nap(struct softgpu_queue *queue, struct softgpu_patience *patience, uint32_t longest) {
    struct timespec timeout = {.tv_nsec = patience->sleep_ns};
    sleep_while(&queue->state, SOFTGPU_QUEUE_RUNS, &timeout);
    patience->sleep_ns *= 2;
    if (patience->sleep_ns > longest)
        patience->sleep_ns = longest;
}

/* Waits while the queue is paused; returns false when the queue must stop. */
static bool may_run(struct softgpu_queue *queue) {
    uint32_t state;
    while ((state = atomic_load_explicit(&queue->state, memory_order_relaxed)) ==
           SOFTGPU_QUEUE_PAUSED)
        sleep_while(&queue->state, SOFTGPU_QUEUE_PAUSED, NULL);
    return state != SOFTGPU_QUEUE_STOPS;
}

/* Spins once and returns true if the wait has lasted less than SPIN_NS; otherwise returns false.
 * The first call only reads the clock, to start the wait. */
static bool spun(struct softgpu_patience *patience) {
    if (patience->since == 0)
        *patience = (struct softgpu_patience){softgpu_now(), FIRST_NAP_NS};
    else if (softgpu_now() - patience->since < SPIN_NS)
        spin();
    else
        return false;
    return true;
}

bool softgpu_queue_wait(struct softgpu_queue *queue, struct softgpu_patience *patience) {
    if (!may_run(queue))
        return false;
    if (!spun(patience))
        nap(queue, patience, SHORT_NAP_NS);
    return true;
}

bool softgpu_queue_idle(struct softgpu_queue *queue, struct softgpu_patience *patience, bool rung) {
    if (!may_run(queue))
        return false;
    if (spun(patience))
        return true;
    if (rung)
        softgpu_doorbell_disarm(&queue->doorbell);
    if (queue->doorbell.armed) {
        softgpu_doorbell_sleep(&queue->doorbell);
        softgpu_doorbell_disarm(&queue->doorbell);
        *patience = (struct softgpu_patience){0};
    } else if (softgpu_now() - patience->since < IN_USE_NS) {
        nap(queue, patience, SHORT_NAP_NS);
    } else if (rung || !softgpu_doorbell_arm(&queue->doorbell)) {
        nap(queue, patience, LONG_NAP_NS);
    }
    /* if the doorbell has just been armed, the caller must look for an entry that arrived before
     * the arming */
    return true;
}

void softgpu_queue_found(struct softgpu_queue *queue) {
    softgpu_doorbell_disarm(&queue->doorbell);
}

void softgpu_queue_fail(struct softgpu_queue *queue, const struct softgpu_fault *fault) {
    const struct timespec look = {.tv_nsec = LOOK_NS};
    softgpu_report_fault(queue->node, (uintptr_t)queue->amd, fault);
    for (int looks = 0; atomic_load(&queue->state) == SOFTGPU_QUEUE_RUNS; looks++) {
        if (looks < LOOKS_FOR_ROCR) {
            sleep_while(&queue->state, SOFTGPU_QUEUE_RUNS, &look);
            continue;
        }
        softgpu_say("the runtime did not act on this fault; ending the process");
        abort();
    }
}
