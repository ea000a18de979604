/* Checks the calls that load modules, and that allocate, free, copy and fill memory. */
#include "calls.h"
#include "access.h"
#include "defined.h"
#include "early_use.h"
#include "host_writes.h"
#include "images.h"
#include "past.h"
#include "race.h"

#include <pthread.h>
#include <string.h>

static struct {
    void *(*load)(void *, size_t);
    void *(*alloc)(uint64_t, void *, bool);
    void (*free)(void *, void *);
    void (*copy)(void *, void *, size_t, void *);
    void (*fill32)(void *, int, size_t, void *);
    void (*fill16)(void *, uint16_t, size_t, void *);
    void (*unregister)(void *);
    void (*unregister_memref)(int64_t, void *, int64_t);
} native;

static void *load(void *image, size_t size) {
    (void)softgpu_call_begins();
    void *module = native.load(image, size);
    softgpu_image_add(image);
    return module;
}

static void *alloc(uint64_t size, void *stream, bool shared) {
    void *memory = native.alloc(size, stream, shared);
    struct softgpu_place place = softgpu_call_begins();
    if (memory && size)
        softgpu_shadow_add((uintptr_t)memory, size, shared ? MEMORY_SHARED : MEMORY_DEVICE, &place,
                           softgpu_order_alloc(stream, &place));
    return memory;
}

static void report_call(const char *kind, const char *call, uint64_t address, uint64_t bytes,
                        const char *access, const struct softgpu_place *place,
                        const struct softgpu_block *block) {
    struct softgpu_report report;
    const uint64_t key[] = {(uintptr_t)kind, (uintptr_t)call,
                            place->count ? (uintptr_t)place->frames[0] : 0, (uintptr_t)access};
    if (!softgpu_report_new(key, sizeof key / sizeof *key))
        return;
    softgpu_report_begin(&report, kind);
    softgpu_report_text(&report, "call", call);
    softgpu_report_place(&report, "place", place);
    if (access)
        softgpu_report_text(&report, "access", access);
    if (bytes)
        softgpu_report_number(&report, "bytes", bytes);
    softgpu_report_number(&report, "address", address);
    softgpu_report_block(&report, block);
    softgpu_report_end(&report);
}

/* Reports a block that is freed or unregistered while an op uses it. */
static void report_pending(const char *kind, const char *call, const struct softgpu_block *block,
                           const struct softgpu_place *place, uint32_t op, bool forgiven) {
    struct softgpu_report report;
    softgpu_report_begin(&report, kind);
    softgpu_report_text(&report, "call", call);
    softgpu_report_place(&report, "place", place);
    softgpu_report_other(&report, op, 0, NULL);
    softgpu_report_text(&report, "forgiven", forgiven ? "yes" : "no");
    softgpu_report_block(&report, block);
    softgpu_report_end(&report);
}

static void check_free(const struct softgpu_block *block, void *stream,
                       const struct softgpu_place *place) {
    static const char kind[] = "early-free";
    struct softgpu_clock clock;
    softgpu_order_of_free(stream, &clock);
    uint32_t op = block->past ? softgpu_past_pending(block->past, &clock, SOFTGPU_LIBRARY) : 0;
    if (op && softgpu_report_pair_new(kind, place, op, SOFTGPU_STOCK))
        report_pending(kind, "mgpuMemFree", block, place, op, true);
}

/* HIP's free waits for the device. Until the free returns, kernels that were launched earlier may
 * use the memory. The checker does not pass a double free, or a free inside a block, to HIP, so
 * that HIP's record stays valid. */
static void free_block(void *memory, void *stream) {
    struct softgpu_block block;
    struct softgpu_place place = softgpu_call_begins();
    enum softgpu_end end = softgpu_shadow_judge((uintptr_t)memory, &block);
    if (end == SOFTGPU_LIVE || end == SOFTGPU_NO_BLOCK) {
        if (end == SOFTGPU_LIVE)
            check_free(&block, stream, &place);
        native.free(memory, stream);
        softgpu_shadow_end((uintptr_t)memory, &place);
        if (memory)
            softgpu_order_wait_all(SOFTGPU_STOCK);
    } else {
        report_call(end == SOFTGPU_ENDED_BEFORE ? "double-free" : "free-inside", "mgpuMemFree",
                    (uintptr_t)memory, 0, NULL, &place, &block);
    }
}

/* ---- registered memory ---- */

static void check_unregister(const char *call, const void *memory) {
    static const char kind[] = "early-unregister";
    struct softgpu_place place = softgpu_call_begins();
    struct softgpu_block block;
    uint64_t va;
    if (!softgpu_check_device_address(memory, &va) || !softgpu_shadow_holds(va, &block))
        return;
    uint32_t op = block.past ? softgpu_past_pending(block.past, NULL, SOFTGPU_LIBRARY) : 0;
    const bool forgiven = softgpu_host_awaited(op, SOFTGPU_STOCK);
    if (op && softgpu_report_pair_new(kind, &place, op, SOFTGPU_EXPLICIT))
        report_pending(kind, call, &block, &place, op, forgiven);
}

static void unregister(void *memory) {
    check_unregister("mgpuMemHostUnregister", memory);
    native.unregister(memory);
}

static void unregister_memref(int64_t rank, void *descriptor, int64_t element_size) {
    struct {
        char *allocated, *aligned;
        int64_t offset;
    } memref;
    memcpy(&memref, descriptor, sizeof memref);
    check_unregister("mgpuMemHostUnregisterMemRef", memref.aligned + memref.offset * element_size);
    native.unregister_memref(rank, descriptor, element_size);
}

/* ---- copies and fills ---- */

/* Returns how many of the `bytes` bytes at `memory` the call may access, if the memory belongs to a
 * block of the host's malloc. All other memory belongs to the host or to HIP, and nothing is known
 * of its end. */
static size_t usable_on_host(const char *call, const char *access, const void *memory, size_t bytes,
                             const struct softgpu_place *place) {
    struct softgpu_host_block found;
    const uint64_t va = (uintptr_t)memory;
    if (!softgpu_host_block_at || !softgpu_host_block_at(va, &found))
        return bytes;
    const uint64_t room = found.begin + found.size - va;
    if (bytes <= room)
        return bytes;
    const struct softgpu_block block = {.va = found.begin, .size = found.size};
    report_call("out-of-bounds", call, va, bytes, access, place, &block);
    return room;
}

/* Returns how many of the `bytes` bytes at `memory` the call may access. */
static size_t usable(const char *call, const char *access, void *memory, size_t bytes,
                     const struct softgpu_place *place) {
    uint64_t va = (uintptr_t)memory;
    struct softgpu_finding finding = softgpu_shadow_find(va, bytes);
    if (!bytes || finding.verdict == SOFTGPU_ALLOWED || finding.verdict == SOFTGPU_UNMAPPED)
        return usable_on_host(call, access, memory, bytes, place);
    const struct softgpu_block *block = &finding.block;
    const char *late = block->registered ? "use-after-unregister" : "use-after-free";
    report_call(finding.verdict == SOFTGPU_FREED ? late : "out-of-bounds", call, va, bytes, access,
                place, block);
    bool inside = finding.verdict == SOFTGPU_OUTSIDE && va - block->va < block->size;
    return inside ? block->va + block->size - va : 0;
}

/* A copy or fill that the program calls. */
struct transfer {
    const char *call;
    uint32_t op;
    struct softgpu_clock clock;
    struct softgpu_place place;
};

static void begin(struct transfer *move, enum softgpu_op_kind kind, void *stream) {
    softgpu_check_stream(move->call, stream, &move->place);
    move->op = softgpu_order_begin(kind, stream, &move->place, &move->clock);
}

static void report_race(const struct transfer *move, uint64_t va, uint64_t bytes, bool writes,
                        const struct softgpu_conflict *found, const struct softgpu_block *block) {
    static const char kind[] = "stream-race";
    struct softgpu_report report;
    const bool forgiven = softgpu_is_over(found->op, &move->clock, SOFTGPU_STOCK);
    if (!softgpu_report_pair_new(kind, &move->place, found->op, SOFTGPU_EXPLICIT))
        return;
    softgpu_report_begin(&report, kind);
    softgpu_report_text(&report, "call", move->call);
    softgpu_report_text(&report, "access", writes ? "store" : "load");
    softgpu_report_number(&report, "bytes", bytes);
    softgpu_report_number(&report, "address", va);
    softgpu_report_op(&report, move->op);
    softgpu_report_other(&report, found->op, found->pc, found->other_writes ? "store" : "load");
    softgpu_report_text(&report, "forgiven", forgiven ? "yes" : "no");
    if (block)
        softgpu_report_block(&report, block);
    else
        softgpu_report_text(&report, "memory", "host");
    softgpu_report_end(&report);
}

/* The location of an access: a block, or memory of the host. */
struct side {
    uint64_t va;
    struct softgpu_block block;
    bool has_block;
    struct softgpu_past *past;
};

static struct side side_of(void *memory) {
    struct side side = {.va = (uintptr_t)memory, .past = softgpu_past_of_host()};
    uint64_t va;
    side.has_block = softgpu_shadow_holds(side.va, &side.block) && !side.block.freed;
    if (!side.has_block && softgpu_check_device_address(memory, &va) &&
        softgpu_shadow_holds(va, &side.block) && !side.block.freed) {
        side.va = va;
        side.has_block = true;
    }
    if (side.has_block)
        side.past = side.block.past;
    return side;
}

/* Compares an access with the accesses of unfinished ops, and records the access. When a copy from
 * pageable memory returns, HIP has already read the pageable memory. So no later access to pageable
 * memory races with the copy. */
static void enter(const struct transfer *move, const struct side *side, uint64_t bytes,
                  bool writes) {
    const struct softgpu_block *block = side->has_block ? &side->block : NULL;
    if (!bytes || !move->op || !side->past)
        return;
    if (softgpu_past_use(side->past, move->op, &move->clock)) {
        struct softgpu_conflict found = {0};
        found.op = softgpu_past_conflict(side->past, &move->clock, side->va, bytes, writes,
                                         &found.other_writes);
        if (!found.op && block && block->cells)
            found =
                softgpu_race_move(block->cells, block->va, side->va, bytes, writes, &move->clock);
        if (found.op)
            report_race(move, side->va, bytes, writes, &found, block);
    }
    if (block)
        softgpu_check_alloc(block->op, move->op, &move->clock, block->va);
    if (writes || block)
        softgpu_past_move(side->past, move->op, side->va, bytes, writes);
}

/* Notes a copy or fill if the host reads the memory that it writes. */
static void note_write(const struct transfer *move, const struct side *to, bool pageable) {
    if (pageable)
        softgpu_wrote_host(move->op, to->va, "pageable", NULL);
    else if (to->has_block && (to->block.registered || to->block.shared))
        softgpu_wrote_host(move->op, to->va, to->block.registered ? "registered" : "host_shared",
                           NULL);
}

/* ---- calls ---- */

/* Copies only the bytes that the call may load from the source and store to the target. */
static void copy(void *to, void *from, size_t bytes, void *stream) {
    struct transfer move = {.call = "mgpuMemcpy", .place = softgpu_call_begins()};
    size_t stores = usable(move.call, "store", to, bytes, &move.place);
    size_t loads = usable(move.call, "load", from, bytes, &move.place);
    size_t least = stores < loads ? stores : loads;
    if (!least && bytes)
        return;
    begin(&move, SOFTGPU_OP_COPY, stream);
    const struct side target = side_of(to), source = side_of(from);
    enter(&move, &source, least, false);
    enter(&move, &target, least, true);
    bool from_device = source.has_block && source.block.bits;
    bool to_device = target.has_block && target.block.bits;
    bool pageable = !target.has_block && softgpu_check_is_host(to);
    size_t back = 0;
    if (from_device && !to_device)
        back = softgpu_copy_back((uintptr_t)from, least, &move.place);
    native.copy(to, from, least, stream);
    if (from_device && pageable)
        softgpu_copy_returned(back);
    /* HIP writes small copies into device memory with the CPU, before the call returns. */
    if (to_device && !from_device)
        softgpu_check_filled((uintptr_t)to, least);
    if (source.has_block)
        note_write(&move, &target, pageable);
    /* If the target is pageable, HIP's call returns after the copy has ended. */
    if (move.op && source.has_block && pageable)
        softgpu_order_wait_op(&move.clock, move.op);
    softgpu_order_end();
}

static void begin_fill(struct transfer *move, void *to, size_t bytes, void *stream) {
    begin(move, SOFTGPU_OP_FILL, stream);
    const struct side target = side_of(to);
    enter(move, &target, bytes, true);
    note_write(move, &target, false);
}

static void fill32(void *to, int value, size_t count, void *stream) {
    struct transfer move = {.call = "mgpuMemset32", .place = softgpu_call_begins()};
    size_t fits = usable(move.call, "store", to, 4 * count, &move.place) / 4;
    if (!fits && count)
        return;
    begin_fill(&move, to, 4 * fits, stream);
    native.fill32(to, value, fits, stream);
    softgpu_order_end();
}

static void fill16(void *to, uint16_t value, size_t count, void *stream) {
    struct transfer move = {.call = "mgpuMemset16", .place = softgpu_call_begins()};
    size_t fits = usable(move.call, "store", to, 2 * count, &move.place) / 2;
    if (!fits && count)
        return;
    begin_fill(&move, to, 2 * fits, stream);
    native.fill16(to, value, fits, stream);
    softgpu_order_end();
}

const struct softgpu_call softgpu_memory_calls[] = {
    {"mgpuModuleLoad", &native.load, (softgpu_function)load},
    {"mgpuMemAlloc", &native.alloc, (softgpu_function)alloc},
    {"mgpuMemFree", &native.free, (softgpu_function)free_block},
    {"mgpuMemcpy", &native.copy, (softgpu_function)copy},
    {"mgpuMemset32", &native.fill32, (softgpu_function)fill32},
    {"mgpuMemset16", &native.fill16, (softgpu_function)fill16},
    {"mgpuMemHostUnregister", &native.unregister, (softgpu_function)unregister},
    {"mgpuMemHostUnregisterMemRef", &native.unregister_memref, (softgpu_function)unregister_memref},
    {NULL, NULL, NULL},
};
