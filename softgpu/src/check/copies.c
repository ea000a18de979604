/* Tracks copies and fills that run without a kernel: in the copy engine, or in place of ROCr's
 * kernels. This file also reports undefined bytes that a copy passes to the host. */
#include "defined.h"
#include "hooks.h"
#include "report.h"

#include <pthread.h>

/* ---- copies back that the program asked for ---- */

enum { MOST_PENDING = 1024 };

/* A copy may run long after its call: if two copies have equal addresses, the earlier call is
 * matched first.
 */
static struct {
    pthread_mutex_t lock;
    struct pending {
        uint64_t from, bytes, left;
        struct softgpu_place place;
    } calls[MOST_PENDING];
    size_t count;
} back = {.lock = PTHREAD_MUTEX_INITIALIZER};

void softgpu_copy_back(uint64_t from, uint64_t bytes, const struct softgpu_place *place) {
    pthread_mutex_lock(&back.lock);
    back.calls[back.count++ % MOST_PENDING] = (struct pending){from, bytes, bytes, *place};
    pthread_mutex_unlock(&back.lock);
}

/* Matches the copied bytes with the earliest call that still has bytes left. */
static bool find_call(uint64_t va, uint64_t bytes, struct pending *found) {
    size_t first = back.count > MOST_PENDING ? back.count - MOST_PENDING : 0;
    pthread_mutex_lock(&back.lock);
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

static void report(const struct pending *call, uint64_t va, uint64_t undefined,
                   const struct softgpu_block *block) {
    struct softgpu_report report;
    const uint64_t key[] = {(uintptr_t)&back,
                            call->place.count ? (uintptr_t)call->place.frames[0] : call->from};
    if (!softgpu_report_new(key, sizeof key / sizeof *key))
        return;
    softgpu_report_begin(&report, "uninitialised");
    softgpu_report_text(&report, "call", "mgpuMemcpy");
    softgpu_report_place(&report, "place", &call->place);
    softgpu_report_text(&report, "use", "copy");
    softgpu_report_number(&report, "bytes", call->bytes);
    softgpu_report_number(&report, "undefined", undefined);
    softgpu_report_number(&report, "address", va);
    softgpu_report_block(&report, block);
    softgpu_report_end(&report);
}

void softgpu_copy_takes(uint64_t va, uint64_t bytes) {
    struct softgpu_block block;
    struct pending call;
    if (softgpu_shadow_holds(va, &block) && find_call(va, bytes, &call))
        report(&call, va, bytes, &block);
}

/* ---- copies and fills ---- */

/* Returns the defined bits of the block at an address, and how many of the bytes lie in the block.
 * NULL: all of these bytes are defined. */
static uint8_t *bits_at(uint64_t va, uint64_t *bytes, struct softgpu_block *block) {
    struct softgpu_finding finding = softgpu_shadow_find(va, 1);
    *block = (struct softgpu_block){0};
    if (finding.verdict != SOFTGPU_ALLOWED)
        return NULL;
    if (finding.high - va < *bytes)
        *bytes = finding.high - va;
    if (!finding.bits)
        return NULL;
    softgpu_shadow_holds(va, block);
    return finding.bits + (va - finding.low);
}

static uint64_t count_undefined(const uint8_t *bits, uint64_t bytes, uint64_t *first) {
    uint64_t count = 0;
    for (uint64_t n = 0; n < bytes; n++)
        if (bits[n] != 0xff && !count++)
            *first = n;
    return count;
}

static void leave(uint64_t from, const uint8_t *bits, uint64_t bytes,
                  const struct softgpu_block *block) {
    struct pending call;
    uint64_t first = 0, undefined = count_undefined(bits, bytes, &first);
    if (find_call(from, bytes, &call) && undefined)
        report(&call, from + first, undefined, block);
}

void softgpu_check_copied(uint64_t to, uint64_t from, uint64_t bytes) {
    struct softgpu_block source, target;
    while (bytes && softgpu_defined_enabled()) {
        uint64_t now = bytes;
        const uint8_t *given = bits_at(from, &now, &source);
        uint8_t *kept = bits_at(to, &now, &target);
        if (kept && given)
            memmove(kept, given, now);
        else if (kept)
            memset(kept, 0xff, now);
        else if (given)
            leave(from, given, now, &source);
        to += now;
        from += now;
        bytes -= now;
    }
}

void softgpu_check_filled(uint64_t to, uint64_t bytes) {
    struct softgpu_block target;
    while (bytes && softgpu_defined_enabled()) {
        uint64_t now = bytes;
        uint8_t *kept = bits_at(to, &now, &target);
        if (kept)
            memset(kept, 0xff, now);
        to += now;
        bytes -= now;
    }
}
