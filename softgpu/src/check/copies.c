/* Tracks copies and fills that run without a kernel. The copy engine, the emulator's replacement
 * for ROCr's copy kernels, or the host makes such copies. This file also reports undefined bytes
 * that a copy writes to host memory. */
#include "access.h"
#include "defined.h"
#include "hooks.h"
#include "race.h"
#include "report.h"

#include <pthread.h>

/* ---- copies back that the program asked for ---- */

enum { MOST_PENDING = 1024 };

/* A copy may run long after its call. If two calls copy from equal addresses, the earlier call is
 * matched first. */
static struct {
    pthread_mutex_t lock;
    struct pending {
        uint64_t from, bytes, left;
        struct softgpu_place place;
    } calls[MOST_PENDING];
    size_t count;
} back = {.lock = PTHREAD_MUTEX_INITIALIZER};

size_t softgpu_copy_back(uint64_t from, uint64_t bytes, const struct softgpu_place *place) {
    pthread_mutex_lock(&back.lock);
    size_t number = back.count++;
    back.calls[number % MOST_PENDING] = (struct pending){from, bytes, bytes, *place};
    pthread_mutex_unlock(&back.lock);
    return number;
}

/* Finds the earliest incomplete call that copies from `va`. Reduces the call's number of remaining
 * bytes by `bytes`, but not below 0. Returns false if no incomplete call copies from `va`. */
static bool find_call(uint64_t va, uint64_t bytes, struct pending *found) {
    pthread_mutex_lock(&back.lock);
    size_t first = back.count > MOST_PENDING ? back.count - MOST_PENDING : 0;
    for (size_t n = first; n < back.count; n++) {
        struct pending *call = &back.calls[n % MOST_PENDING];
        if (va - call->from >= call->bytes || !call->left)
            continue;
        call->left -= bytes < call->left ? bytes : call->left;
        *found = *call;
        pthread_mutex_unlock(&back.lock);
        return true;
    }
    pthread_mutex_unlock(&back.lock);
    return false;
}

static uint64_t count_undefined(const uint8_t *bits, uint64_t bytes, uint64_t *first) {
    uint64_t count = 0;
    for (uint64_t n = 0; n < bytes; n++)
        if (bits[n] != 0xff && !count++)
            *first = n;
    return count;
}

/* Names the kernel that stored the undefined byte, if the cells record such a kernel. The kernel
 * has computed the byte from undefined values. */
static void put_writer(struct softgpu_report *report, const struct softgpu_block *block,
                       uint64_t va) {
    uint64_t pc;
    uint32_t op = block->cells ? softgpu_race_writer(block->cells, block->va, va, &pc) : 0;
    if (op)
        softgpu_report_other(report, op, pc, "store");
}

/* Reports a call that copies undefined bytes to the host. The copied bytes lie in one block, as
 * calls.c ensures. */
static void report(const struct pending *call) {
    struct softgpu_report report;
    struct softgpu_block block;
    uint64_t first = 0;
    if (!softgpu_shadow_holds(call->from, &block) || !block.bits)
        return;
    uint64_t undefined = count_undefined(block.bits + (call->from - block.va), call->bytes, &first);
    const uint64_t key[] = {(uintptr_t)&back,
                            call->place.count ? (uintptr_t)call->place.frames[0] : call->from};
    if (!undefined || !softgpu_report_new(key, sizeof key / sizeof *key))
        return;
    softgpu_report_begin(&report, "uninitialised");
    softgpu_report_text(&report, "call", "mgpuMemcpy");
    softgpu_report_place(&report, "place", &call->place);
    softgpu_report_text(&report, "use", "copy");
    softgpu_report_number(&report, "bytes", call->bytes);
    softgpu_report_number(&report, "undefined", undefined);
    softgpu_report_number(&report, "address", call->from + first);
    put_writer(&report, &block, call->from + first);
    softgpu_report_block(&report, &block);
    softgpu_report_end(&report);
}

void softgpu_copy_takes(uint64_t va, uint64_t bytes) {
    struct pending call;
    if (find_call(va, bytes, &call))
        report(&call);
}

void softgpu_copy_returned(size_t number) {
    pthread_mutex_lock(&back.lock);
    struct pending *call = &back.calls[number % MOST_PENDING], unseen = *call;
    bool overwritten = back.count - number > MOST_PENDING;
    if (!overwritten)
        call->left = 0;
    pthread_mutex_unlock(&back.lock);
    if (!overwritten && unseen.left)
        report(&unseen);
}

/* ---- copies and fills ---- */

/* Returns the defined bits for memory at `va`, or NULL if all bytes count as defined. Limits
 * `*bytes` to the bytes that lie in one block. */
static uint8_t *bits_at(uint64_t va, uint64_t *bytes) {
    struct softgpu_finding finding = softgpu_shadow_find(va, 1);
    if (finding.verdict != SOFTGPU_ALLOWED)
        return NULL;
    if (finding.high - va < *bytes)
        *bytes = finding.high - va;
    return finding.bits ? finding.bits + (va - finding.low) : NULL;
}

static void leave(uint64_t from, const uint8_t *bits, uint64_t bytes) {
    struct pending call;
    uint64_t first;
    if (find_call(from, bytes, &call) && count_undefined(bits, bytes, &first))
        report(&call);
}

void softgpu_check_copied(uint64_t to, uint64_t from, uint64_t bytes) {
    while (bytes && softgpu_defined_enabled()) {
        uint64_t now = bytes;
        const uint8_t *given = bits_at(from, &now);
        uint8_t *kept = bits_at(to, &now);
        if (kept && given)
            memmove(kept, given, now);
        else if (kept)
            memset(kept, 0xff, now);
        else if (given)
            leave(from, given, now);
        to += now;
        from += now;
        bytes -= now;
    }
}

void softgpu_check_filled(uint64_t to, uint64_t bytes) {
    while (bytes && softgpu_defined_enabled()) {
        uint64_t now = bytes;
        uint8_t *kept = bits_at(to, &now);
        if (kept)
            memset(kept, 0xff, now);
        to += now;
        bytes -= now;
    }
}
