/* Queues: a ring in memory that HIP fills, and a thread for each that drains it, so that kernels of
 * different queues run side by side and may wait for each other, and copies beside them.
 *
 * The thread polls its ring for a while, then sleeps until the doorbell is rung. */
#include "queue.h"

#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Since a queue last had work it spins, then naps, each nap longer than the one before, so that a
 * launch waits at most SHORT_NAP_NS. It spins only briefly and does not yield: on a core that it
 * has to share with HIP, which spins too, a nap's timer gets it the core back within microseconds,
 * but after a yield it waits for the scheduler's tick (120 us against 3 ms for launch and wait).
 * After IN_USE_NS the doorbell is armed; where that cannot be, it goes on napping, for up to
 * LONG_NAP_NS. */
enum {
    SPIN_NS = 10 * 1000,
    FIRST_NAP_NS = 10 * 1000,
    SHORT_NAP_NS = 200 * 1000,
    IN_USE_NS = 20 * 1000 * 1000,
    LONG_NAP_NS = 2000 * 1000,
    PAUSES_PER_LOOK = 24,
    SLICE_NS = 100 * 1000,
    TIMER_SLACK_NS = 1000, /* the default of 50 us would double the short naps */
    JOIN_SECONDS = 10,
    SECONDS_FOR_ROCR = 5,
};

static void sleep_while(_Atomic uint32_t *word, uint32_t value, const struct timespec *timeout) {
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, timeout, NULL, 0);
}

static void wake(_Atomic uint32_t *word) {
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
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

/* Waits out a pause; false when the queue is to stop. */
static bool may_run(struct softgpu_queue *queue) {
    uint32_t state;
    while ((state = atomic_load_explicit(&queue->state, memory_order_relaxed)) ==
           SOFTGPU_QUEUE_PAUSED)
        sleep_while(&queue->state, SOFTGPU_QUEUE_PAUSED, NULL);
    return state != SOFTGPU_QUEUE_STOPS;
}

/* True while it is too early to sleep. The first call only looks at the clock. */
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

bool softgpu_queue_idle(struct softgpu_queue *queue, struct softgpu_patience *patience) {
    if (!may_run(queue))
        return false;
    if (spun(patience))
        return true;
    if (queue->doorbell.armed) {
        softgpu_doorbell_sleep(&queue->doorbell);
        softgpu_doorbell_disarm(&queue->doorbell);
        *patience = (struct softgpu_patience){0};
    } else if (softgpu_now() - patience->since < IN_USE_NS) {
        nap(queue, patience, SHORT_NAP_NS);
    } else if (!softgpu_doorbell_arm(&queue->doorbell)) {
        nap(queue, patience, LONG_NAP_NS);
    }
    /* Else it is armed now: the caller looks once more, for what was rung just before. */
    return true;
}

void softgpu_queue_found(struct softgpu_queue *queue) {
    softgpu_doorbell_disarm(&queue->doorbell);
}

void softgpu_queue_fail(struct softgpu_queue *queue, const struct softgpu_fault *fault) {
    const struct timespec limit = {.tv_sec = SECONDS_FOR_ROCR};
    softgpu_report_fault(queue->node, (uintptr_t)queue->amd, fault);
    uint64_t since = softgpu_now();
    while (atomic_load(&queue->state) == SOFTGPU_QUEUE_RUNS) {
        sleep_while(&queue->state, SOFTGPU_QUEUE_RUNS, &limit);
        if (softgpu_now() - since < SECONDS_FOR_ROCR * UINT64_C(1000000000))
            continue;
        softgpu_say("the runtime did not act on this fault; ending the process");
        abort();
    }
}

/* struct sched_attr, which the C library does not declare. */
struct scheduling {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

/* HIP spins while it waits for a kernel. Where it shares a core with the queue's thread, a short
 * slice gets the thread its turn at once, not after HIP's slice of some milliseconds (Linux 6.12
 * and later; elsewhere it changes nothing). */
static void prepare_thread(const char *name) {
    struct scheduling scheduling = {.size = sizeof scheduling, .runtime = SLICE_NS};
    syscall(SYS_sched_setattr, 0, &scheduling, 0);
    prctl(PR_SET_NAME, name);
    prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS);
}

static void *drain_aql(void *argument) {
    prepare_thread("softgpu-queue");
    softgpu_drain_aql(argument);
    return NULL;
}

static void *drain_sdma(void *argument) {
    prepare_thread("softgpu-copy");
    softgpu_drain_sdma(argument);
    return NULL;
}

/* The program's signals are for the program's threads. */
static int start_thread(struct softgpu_queue *queue, void *(*drain)(void *)) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&queue->thread, NULL, drain, queue);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

/* ROCr brings the indices of an AQL queue, as members of its amd_queue_t. */
static int start_aql(struct softgpu_queue *queue, const HsaQueueResource *resource) {
    char *read_index = (char *)(uintptr_t)resource->QueueRptrValue;
    queue->read_index = (_Atomic uint64_t *)(void *)read_index;
    queue->amd = (void *)(read_index - offsetof(struct softgpu_amd_queue, read_dispatch_id));
    return start_thread(queue, drain_aql);
}

/* Those of an SDMA queue are the driver's. */
static int start_sdma(struct softgpu_queue *queue, HsaQueueResource *resource) {
    resource->QueueRptrValue = (uintptr_t)&queue->sdma_read_index;
    resource->QueueWptrValue = (uintptr_t)&queue->sdma_write_index;
    return start_thread(queue, drain_sdma);
}

SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtCreateQueue(HSAuint32 node, HSA_QUEUE_TYPE type,
                                               HSAuint32 percentage, HSA_QUEUE_PRIORITY priority,
                                               void *ring, HSAuint64 ring_bytes, HsaEvent *event,
                                               HsaQueueResource *resource) {
    SOFTGPU_REFUSE_AFTER_FORK();
    (void)percentage, (void)priority, (void)event;
    if (!softgpu_node_target(node))
        return HSAKMT_STATUS_INVALID_NODE_UNIT;
    if (type != HSA_QUEUE_COMPUTE_AQL && type != HSA_QUEUE_SDMA)
        return HSAKMT_STATUS_NOT_SUPPORTED;
    struct softgpu_queue *queue = calloc(1, sizeof *queue);
    if (!queue || !softgpu_doorbell_open(&queue->doorbell)) {
        free(queue);
        return HSAKMT_STATUS_NO_MEMORY;
    }
    queue->node = node;
    queue->ring = ring;
    queue->ring_bytes = ring_bytes;
    int error = type == HSA_QUEUE_SDMA ? start_sdma(queue, resource) : start_aql(queue, resource);
    if (error) {
        softgpu_doorbell_close(&queue->doorbell);
        free(queue);
        return HSAKMT_STATUS_OUT_OF_RESOURCES;
    }
    resource->QueueId = (uintptr_t)queue;
    resource->QueueDoorBell = (uintptr_t)queue->doorbell.bell;
    return HSAKMT_STATUS_SUCCESS;
}

/* Since ROCr 7, which may also name the copy engine. */
SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtCreateQueueExt(HSAuint32 node, HSA_QUEUE_TYPE type,
                                                  HSAuint32 percentage, HSA_QUEUE_PRIORITY priority,
                                                  HSAuint32 engine, void *ring,
                                                  HSAuint64 ring_bytes, HsaEvent *event,
                                                  HsaQueueResource *resource);
HSAKMT_STATUS hsaKmtCreateQueueExt(HSAuint32 node, HSA_QUEUE_TYPE type, HSAuint32 percentage,
                                   HSA_QUEUE_PRIORITY priority, HSAuint32 engine, void *ring,
                                   HSAuint64 ring_bytes, HsaEvent *event,
                                   HsaQueueResource *resource) {
    enum { SDMA_BY_ENGINE = 6 };
    (void)engine; /* they are alike, and each queue has a thread of its own */
    return hsaKmtCreateQueue(node, (int)type == SDMA_BY_ENGINE ? HSA_QUEUE_SDMA : type, percentage,
                             priority, ring, ring_bytes, event, resource);
}

static void set_state(struct softgpu_queue *queue, enum softgpu_queue_state state) {
    atomic_store(&queue->state, state);
    wake(&queue->state);
    softgpu_doorbell_kick(&queue->doorbell);
}

/* A kernel that is still running is given some time; one that never ends is left behind with its
 * queue, so that the process can end. */
SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtDestroyQueue(HSA_QUEUEID id) {
    SOFTGPU_REFUSE_AFTER_FORK();
    struct softgpu_queue *queue = (struct softgpu_queue *)(uintptr_t)id;
    if (!queue)
        return HSAKMT_STATUS_INVALID_HANDLE;
    set_state(queue, SOFTGPU_QUEUE_STOPS);
    struct timespec deadline;
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += JOIN_SECONDS;
    /* Not pthread_clockjoin_np, which is newer than the oldest C library that this serves. */
    if (pthread_timedjoin_np(queue->thread, NULL, &deadline) != 0) {
        softgpu_say("a queue was destroyed while its kernel ran, which did not end within %d s; "
                    "it is left behind",
                    JOIN_SECONDS);
        pthread_detach(queue->thread);
        return HSAKMT_STATUS_SUCCESS;
    }
    softgpu_doorbell_close(&queue->doorbell);
    free(queue);
    return HSAKMT_STATUS_SUCCESS;
}

/* ROCr pauses a queue, by giving it no share, before it tells HIP of an error on it. */
SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtUpdateQueue(HSA_QUEUEID id, HSAuint32 percentage,
                                               HSA_QUEUE_PRIORITY priority, void *ring,
                                               HSAuint64 ring_bytes, HsaEvent *event) {
    SOFTGPU_REFUSE_AFTER_FORK();
    (void)priority, (void)ring, (void)ring_bytes, (void)event;
    struct softgpu_queue *queue = (struct softgpu_queue *)(uintptr_t)id;
    if (!queue)
        return HSAKMT_STATUS_INVALID_HANDLE;
    set_state(queue, percentage ? SOFTGPU_QUEUE_RUNS : SOFTGPU_QUEUE_PAUSED);
    return HSAKMT_STATUS_SUCCESS;
}

/* Workgroups run on the cores of the machine, not on compute units. */
SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtSetQueueCUMask(HSA_QUEUEID id, HSAuint32 count,
                                                  HSAuint32 *mask) {
    (void)id, (void)count, (void)mask;
    return HSAKMT_STATUS_SUCCESS;
}

/* For cooperative launches, whose groups wait for each other through memory. */
SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtAllocQueueGWS(HSA_QUEUEID id, HSAuint32 count,
                                                 HSAuint32 *first) {
    (void)count;
    if (!id)
        return HSAKMT_STATUS_INVALID_HANDLE;
    if (first)
        *first = 0;
    return HSAKMT_STATUS_SUCCESS;
}
