#include "launch.h"
#include "access.h"
#include "hooks.h"
#include "race.h"
#include "report.h"

#include "../queue.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum { MOST_QUEUES = 256, LONGEST_SECONDS = 60, FIRST_NAP_NS = 5000, LONGEST_NAP_NS = 500000 };

static struct {
    pthread_mutex_t lock;
    struct softgpu_queue *queues[MOST_QUEUES];
    uint32_t op;
    struct softgpu_clock *clock; /* not freed if the launch exceeds the time limit */
} device = {.lock = PTHREAD_MUTEX_INITIALIZER};

void softgpu_check_queue(struct softgpu_queue *queue, bool begins) {
    pthread_mutex_lock(&device.lock);
    unsigned n = 0;
    while (n < MOST_QUEUES && device.queues[n] != (begins ? NULL : queue))
        n++;
    if (n < MOST_QUEUES)
        device.queues[n] = begins ? queue : NULL;
    pthread_mutex_unlock(&device.lock);
}

static bool is_busy(const struct softgpu_queue *queue) {
    if (!queue || !queue->amd)
        return false;
    return __atomic_load_n(&queue->amd->write_dispatch_id, __ATOMIC_ACQUIRE) !=
           atomic_load(queue->read_index);
}

static bool is_idle(void) {
    bool busy = false;
    pthread_mutex_lock(&device.lock);
    for (unsigned n = 0; n < MOST_QUEUES && !busy; n++)
        busy = is_busy(device.queues[n]);
    pthread_mutex_unlock(&device.lock);
    return !busy;
}

void softgpu_launch_called(uint32_t op, const struct softgpu_clock *clock) {
    struct softgpu_clock *kept = malloc(sizeof *kept);
    pthread_mutex_lock(&device.lock);
    if (kept)
        *kept = *clock;
    device.op = kept ? op : 0;
    device.clock = kept;
    pthread_mutex_unlock(&device.lock);
}

static void give_up(uint32_t op) {
    struct softgpu_report report;
    softgpu_report_begin(&report, "unordered");
    if (softgpu_op_at(op))
        softgpu_report_other(&report, op, 0, NULL);
    softgpu_report_end(&report);
    softgpu_order_lost();
}

void softgpu_launch_await(void) {
    struct timespec nap = {.tv_nsec = FIRST_NAP_NS};
    time_t begin = time(NULL);
    bool idle = is_idle();
    while (!idle && time(NULL) - begin < LONGEST_SECONDS) {
        nanosleep(&nap, NULL);
        nap.tv_nsec = nap.tv_nsec < LONGEST_NAP_NS ? nap.tv_nsec * 2 : LONGEST_NAP_NS;
        idle = is_idle();
    }
    if (!idle)
        give_up(device.op); /* this thread has set it, and no other launch begins before */
    pthread_mutex_lock(&device.lock);
    if (idle)
        free(device.clock);
    device.clock = NULL;
    device.op = 0;
    pthread_mutex_unlock(&device.lock);
}

uint32_t softgpu_launch_of(struct dispatch *d) {
    pthread_mutex_lock(&device.lock);
    uint32_t number = device.op;
    d->clock = device.clock;
    pthread_mutex_unlock(&device.lock);
    struct softgpu_op *op = softgpu_op_at(number);
    if (!op) {
        d->clock = NULL;
        return softgpu_order_unknown();
    }
    op->entry = d->entry;
    op->object = d->packet->kernel_object;
    op->target = d->target;
    return number;
}
