#include "host_writes.h"
#include "order.h"
#include "report.h"

#include <pthread.h>
#include <stdio.h>

enum { MOST_PLACES = 256, LONGEST_NAME = 256 };

static const char *const calls[] = {
    [SOFTGPU_OP_LAUNCH] = "launch",
    [SOFTGPU_OP_COPY] = "mgpuMemcpy",
    [SOFTGPU_OP_FILL] = "mgpuMemset",
};

struct host_write {
    uint32_t op;
    uint64_t address;
    const char *memory;
    char kernel[LONGEST_NAME]; /* a copy, because the program may unload the module */
};

/* Holds two ops that wrote host memory, for each place in the program and kind of op. One is the
 * latest. The other is an earlier one for which the program has not waited. So a later op with its
 * wait hides no missing wait. */
static struct {
    pthread_mutex_t lock;
    struct place {
        unsigned count; /* how many such ops this place has called */
        struct host_write latest, unawaited;
        bool reported;
    } places[MOST_PLACES];
    unsigned count;
} host = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool is_at(const struct place *place, const struct softgpu_op *op) {
    const struct softgpu_op *of = softgpu_op_at(place->latest.op);
    return of->kind == op->kind && of->place.frames[0] == op->place.frames[0];
}

void softgpu_wrote_host(uint32_t op, uint64_t address, const char *memory, const char *kernel) {
    const struct softgpu_op *of = softgpu_op_at(op);
    if (!of || of->kind == SOFTGPU_OP_UNKNOWN)
        return;
    pthread_mutex_lock(&host.lock);
    unsigned n = 0;
    while (n < host.count && !is_at(&host.places[n], of))
        n++;
    struct place *place = n < MOST_PLACES ? &host.places[n] : NULL;
    if (place && place->latest.op != op) {
        place->latest = (struct host_write){.op = op, .address = address, .memory = memory};
        snprintf(place->latest.kernel, LONGEST_NAME, "%s", kernel ? kernel : "");
        if (!place->count++ || softgpu_host_awaited(place->unawaited.op, SOFTGPU_EXPLICIT))
            place->unawaited = place->latest;
        host.count += n == host.count;
    }
    pthread_mutex_unlock(&host.lock);
}

/* ---- the program's end ---- */

static void report_write(const struct host_write *write, const struct place *place) {
    struct softgpu_report report;
    softgpu_report_begin(&report, "missing-wait");
    softgpu_report_text(&report, "call", calls[softgpu_op_at(write->op)->kind]);
    softgpu_report_op(&report, write->op);
    if (write->kernel[0])
        softgpu_report_text(&report, "kernel", write->kernel);
    softgpu_report_number(&report, "address", write->address);
    softgpu_report_number(&report, "count", place->count);
    softgpu_report_text(&report, "which", write == &place->latest ? "last" : "one");
    softgpu_report_text(&report, "memory", write->memory);
    softgpu_report_text(&report, "forgiven",
                        softgpu_host_awaited(write->op, SOFTGPU_STOCK) ? "yes" : "no");
    softgpu_report_end(&report);
}

/* Returns the op to report for a place, or NULL. */
static const struct host_write *unawaited_of(const struct place *place) {
    if (place->reported)
        return NULL;
    if (!softgpu_host_awaited(place->latest.op, SOFTGPU_EXPLICIT))
        return &place->latest;
    return softgpu_host_awaited(place->unawaited.op, SOFTGPU_EXPLICIT) ? NULL : &place->unawaited;
}

/* Reports the latest op first, because its wait also orders the earlier ops of its stream. */
void softgpu_check_host_writes(void) {
    const struct host_write *latest;
    do {
        struct place *of = NULL;
        latest = NULL;
        for (unsigned n = 0; n < host.count; n++) {
            const struct host_write *write = unawaited_of(&host.places[n]);
            if (write && (!latest || write->op > latest->op)) {
                latest = write;
                of = &host.places[n];
            }
        }
        if (of) {
            report_write(latest, of);
            softgpu_order_reported(latest->op, SOFTGPU_EXPLICIT);
            of->reported = true;
        }
    } while (latest);
}
