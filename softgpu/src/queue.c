/* Implements queues: HIP fills a ring in memory, and a thread for each queue drains the ring.
 * Kernels and copies of different queues run concurrently, and may wait for each other.
 *
 * The thread polls its ring for a while, and then sleeps until HIP rings the doorbell. */
#include "queue.h"
#include "check/hooks.h"

#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    SLICE_NS = 100 * 1000,
    TIMER_SLACK_NS = 1000, /* the default of 50 us would double the duration of short naps */
    JOIN_SECONDS = 10,
};

static void wake(_Atomic uint32_t *word) {
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Mirrors struct sched_attr, which the C library does not declare. */
struct scheduling {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

/* HIP spins while waiting for a kernel. If HIP's thread shares a core with the queue's thread, the
 * short time slice makes the scheduler run the queue's thread at once. With a longer slice, HIP's
 * thread would occupy the core for some milliseconds. (The slice needs Linux 6.12 or later; older
 * kernels ignore the slice.) */
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

/* Blocks all signals in the queue's thread, so that the program's threads receive the program's
 * signals. */
static int start_thread(struct softgpu_queue *queue, void *(*drain)(void *)) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&queue->thread, NULL, drain, queue);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

/* Starts an AQL queue, whose read and write indices are members of ROCr's amd_queue_t. */
static int start_aql(struct softgpu_queue *queue, const HsaQueueResource *resource) {
    char *read_index = (char *)(uintptr_t)resource->QueueRptrValue;
    queue->read_index = (_Atomic uint64_t *)(void *)read_index;
    queue->amd = (void *)(read_index - offsetof(struct softgpu_amd_queue, read_dispatch_id));
    return start_thread(queue, drain_aql);
}

/* The driver provides the indices of an SDMA queue. */
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
    CHECK_QUEUE(queue, true);
    resource->QueueId = (uintptr_t)queue;
    resource->QueueDoorBell = (uintptr_t)queue->doorbell.bell;
    return HSAKMT_STATUS_SUCCESS;
}

/* Creates a queue. ROCr 7 and later call hsaKmtCreateQueueExt, which has an additional argument for
 * the copy engine. */
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
    (void)engine; /* all engines are equal, and each queue has its own thread */
    return hsaKmtCreateQueue(node, (int)type == SDMA_BY_ENGINE ? HSA_QUEUE_SDMA : type, percentage,
                             priority, ring, ring_bytes, event, resource);
}

static void set_state(struct softgpu_queue *queue, enum softgpu_queue_state state) {
    atomic_store(&queue->state, state);
    wake(&queue->state);
    softgpu_doorbell_kick(&queue->doorbell);
}

/* Waits up to JOIN_SECONDS for a running kernel. If the kernel still runs after JOIN_SECONDS,
 * abandons the kernel and the queue, so that the process can end. */
SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtDestroyQueue(HSA_QUEUEID id) {
    SOFTGPU_REFUSE_AFTER_FORK();
    struct softgpu_queue *queue = (struct softgpu_queue *)(uintptr_t)id;
    if (!queue)
        return HSAKMT_STATUS_INVALID_HANDLE;
    CHECK_QUEUE(queue, false);
    set_state(queue, SOFTGPU_QUEUE_STOPS);
    struct timespec deadline;
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += JOIN_SECONDS;
    /* The oldest supported C library lacks pthread_clockjoin_np. */
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

/* Pauses the queue if `percentage` is 0, otherwise continues the queue. ROCr pauses a queue before
 * ROCr reports the queue's error to HIP. */
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

/* Ignores the mask of compute units, because workgroups run on CPU cores. */
SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtSetQueueCUMask(HSA_QUEUEID id, HSAuint32 count,
                                                  HSAuint32 *mask) {
    (void)id, (void)count, (void)mask;
    return HSAKMT_STATUS_SUCCESS;
}

/* Accepts every queue. ROCr calls hsaKmtAllocQueueGWS for cooperative launches, whose workgroups
 * may wait for each other by global wave sync (isa/gws.c). */
SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtAllocQueueGWS(HSA_QUEUEID id, HSAuint32 count,
                                                 HSAuint32 *first) {
    (void)count;
    if (!id)
        return HSAKMT_STATUS_INVALID_HANDLE;
    if (first)
        *first = 0;
    return HSAKMT_STATUS_SUCCESS;
}
