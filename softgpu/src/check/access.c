/* Checks the accesses of a kernel's lanes. A wave's accesses mostly lie in one block, so each
 * thread caches a few permitted ranges until the memory map changes. */
#include "access.h"
#include "defined.h"
#include "early_use.h"
#include "hooks.h"
#include "host_writes.h"
#include "images.h"
#include "past.h"
#include "race.h"
#include "report.h"

#include <elf.h>
#include <stdio.h>

enum { ALLOWED_RANGES = 8 };

/* A range of a code object is never cached for stores, because parts of a code object are
 * read-only. */
struct allowed {
    uint64_t low, high;
    struct softgpu_cells *cells; /* the cells for memory from `low` on, or NULL */
    struct softgpu_past *past;   /* the block's earlier ops, or NULL if all earlier ops are over */
    uint32_t alloc;              /* the allocation's op, or 0 if the launch follows it */
    uint8_t *bits;               /* the defined bits for memory from `low` on, or NULL */
    bool stores, registered;
};

/* The cached ranges belong to one launch. The next call of find_known may remove the ranges,
 * because other threads of the program change the map at any time. So the caller must use a range
 * before that call. */
static _Thread_local struct {
    uint64_t generation;
    uint32_t launch;
    unsigned next;
    struct allowed ranges[ALLOWED_RANGES];
} known;

static const struct allowed *find_known(const struct dispatch *d, uint64_t va, uint64_t bytes,
                                        bool store) {
    uint64_t generation = softgpu_shadow_generation();
    if (known.generation != generation || known.launch != d->launch) {
        memset(&known, 0, sizeof known);
        known.generation = generation;
        known.launch = d->launch;
    }
    for (unsigned n = 0; n < ALLOWED_RANGES; n++) {
        const struct allowed *range = &known.ranges[n];
        if (va >= range->low && va < range->high && bytes <= range->high - va &&
            (range->stores || !store))
            return range;
    }
    return NULL;
}

static const struct allowed *remember(const struct dispatch *d,
                                      const struct softgpu_finding *finding, bool stores) {
    struct allowed *range = &known.ranges[known.next++ % ALLOWED_RANGES];
    bool shared = finding->past && d->clock && softgpu_past_use(finding->past, d->launch, d->clock);
    bool early = d->clock && !softgpu_is_over(finding->op, d->clock, SOFTGPU_LIBRARY);
    *range = (struct allowed){.low = finding->low,
                              .high = finding->high,
                              .cells = finding->cells,
                              .past = shared ? finding->past : NULL,
                              .alloc = early ? finding->op : 0,
                              .bits = finding->bits,
                              .stores = stores,
                              .registered = finding->registered};
    return range;
}

/* ---- code objects ---- */

static bool find_code_object(uint64_t va, struct softgpu_range *range) {
    return softgpu_find_range(va, range) && range->size >= sizeof(Elf64_Ehdr) &&
           memcmp(range->host, ELFMAG, SELFMAG) == 0;
}

/* Returns whether an address lies in a read-only segment of a loaded code object. */
static bool is_read_only(uint64_t va, const struct softgpu_range *range) {
    Elf64_Ehdr header;
    memcpy(&header, range->host, sizeof header);
    for (unsigned n = 0; n < header.e_phnum; n++) {
        Elf64_Phdr segment;
        uint64_t at = header.e_phoff + n * sizeof segment;
        if (at > range->size || range->size - at < sizeof segment)
            return false;
        memcpy(&segment, range->host + at, sizeof segment);
        if (segment.p_type == PT_LOAD && va - range->va - segment.p_vaddr < segment.p_memsz)
            return !(segment.p_flags & PF_W);
    }
    return false;
}

/* ---- reports ---- */

/* Further kinds of faults, which the memory map cannot detect. */
enum { READ_ONLY = 16, OUTSIDE_GROUP, OUTSIDE_SCRATCH, RACE, UNINITIALISED, BARRIER };

/* Returns true for HIP's own copy and fill kernels, whose call calls.c has already checked. */
static bool is_hips(const struct dispatch *d) {
    char name[64];
    softgpu_kernel_name(d->packet->kernel_object, name, sizeof name);
    return name[0] == '(' || strncmp(name, "__amd_rocclr_", 13) == 0;
}

static const char *way_of(const struct inst *i) {
    if (i->encoding == E_SMEM)
        return i->dst.kind && strncmp(i->row->name, "s_store", 7) != 0 &&
                       strncmp(i->row->name, "s_buffer_store", 14) != 0
                   ? "load"
                   : "store";
    if (move_of(i->row) == MV_ATOMIC_32 || move_of(i->row) == MV_ATOMIC_64)
        return "atomic";
    return i->dst.kind != O_NONE && i->src[1].kind == O_NONE ? "load" : "store";
}

static bool writes(const struct inst *i) {
    return way_of(i)[0] != 'l';
}

static void put_wave(struct softgpu_report *report, const uint32_t *group, unsigned wave) {
    softgpu_report_number(report, "workgroup_x", group[0]);
    softgpu_report_number(report, "workgroup_y", group[1]);
    softgpu_report_number(report, "workgroup_z", group[2]);
    softgpu_report_number(report, "wave", wave);
}

static void put_instruction(struct softgpu_report *report, enum target_mask target, uint64_t entry,
                            const struct inst *i, uint64_t pc) {
    char instruction[256];
    unsigned image;
    uint64_t code;
    softgpu_print(target, i, pc, instruction, sizeof instruction);
    softgpu_report_number(report, "offset", pc - entry);
    softgpu_report_text(report, "instruction", instruction);
    if (softgpu_image_find(pc, &image, &code)) {
        softgpu_report_number(report, "image", image);
        softgpu_report_number(report, "code", code);
    }
    softgpu_report_text(report, "access", way_of(i));
}

static void put_lane(struct softgpu_report *report, struct wave *w, const struct inst *i,
                     int lane) {
    const struct dispatch *d = w->group->dispatch;
    char kernel[512];
    softgpu_kernel_name(d->packet->kernel_object, kernel, sizeof kernel);
    softgpu_report_text(report, "kernel", kernel);
    softgpu_report_text(report, "target", d->context->target->name);
    put_wave(report, w->group->id, w->index);
    if (lane >= 0)
        softgpu_report_number(report, "lane", (unsigned)lane);
    put_instruction(report, d->target, d->entry, i, w->code->va + i->offset);
}

static void put_access(struct softgpu_report *report, struct wave *w, const struct inst *i,
                       int lane, uint64_t va, unsigned bytes) {
    put_lane(report, w, i, lane);
    softgpu_report_number(report, "bytes", bytes);
    softgpu_report_number(report, "address", va);
}

/* Returns true for the first fault of a kind at an instruction, in any block. */
static bool is_new(const struct wave *w, const struct inst *i, uint64_t kind) {
    const uint64_t key[] = {w->group->dispatch->packet->kernel_object, w->code->va + i->offset,
                            kind};
    return softgpu_report_new(key, sizeof key / sizeof *key);
}

static const char *const kinds[] = {
    [SOFTGPU_OUTSIDE] = "out-of-bounds",
    [SOFTGPU_FREED] = "use-after-free",
    [SOFTGPU_UNMAPPED] = "unmapped",
};

static const char *kind_of(const struct softgpu_finding *finding) {
    bool late = finding->verdict == SOFTGPU_FREED && finding->block.registered;
    return late ? "use-after-unregister" : kinds[finding->verdict];
}

#define DEVICE_ADDRESS                                                                             \
    "give the kernel the device's address, which mgpuMemGetDeviceMemRef1dFloat returns for f32, "  \
    "and mgpuMemGetDeviceMemRef1dInt32 for i32"

static void report_finding(struct wave *w, const struct inst *i, int lane, uint64_t va,
                           unsigned bytes, const struct softgpu_finding *finding) {
    struct softgpu_report report;
    uint64_t host;
    if (!is_new(w, i, finding->verdict))
        return;
    softgpu_report_begin(&report, kind_of(finding));
    put_access(&report, w, i, lane, va, bytes);
    if (finding->has_block)
        softgpu_report_block(&report, &finding->block);
    else if (softgpu_registered_address(va, &host))
        softgpu_report_text(&report, "note",
                            "this is the host's address of registered memory: " DEVICE_ADDRESS
                            ". Copy memrefs of other types to memory of gpu.alloc");
    else if (softgpu_is_host_memory(va))
        softgpu_report_text(&report, "note",
                            "this is memory of the host that is not registered: copy it to memory "
                            "of gpu.alloc (in C: mgpuMemAlloc), or register it (gpu.host_register; "
                            "in C: mgpuMemHostRegister) and " DEVICE_ADDRESS);
    softgpu_report_end(&report);
}

static void report_read_only(struct wave *w, const struct inst *i, int lane, uint64_t va,
                             unsigned bytes) {
    struct softgpu_report report;
    if (!is_new(w, i, READ_ONLY))
        return;
    softgpu_report_begin(&report, "write-to-code");
    put_access(&report, w, i, lane, va, bytes);
    softgpu_report_end(&report);
}

/* Sets the result of a refused load to 0, so that no loop waits for the missing value. */
static void load_nothing(struct wave *w, const struct inst *i, int lane) {
    if (i->dst.kind == O_VGPR)
        for (unsigned r = 0; r < softgpu_type_dwords(i->row->dst); r++)
            w->v[i->dst.reg + r][lane] = 0;
}

void softgpu_check_outside(struct wave *w, const struct inst *i, int lane, const char *what,
                           uint64_t va, unsigned bytes) {
    struct softgpu_report report;
    bool scratch = strstr(what, "scratch") != NULL;
    const struct dispatch *d = w->group->dispatch;
    load_nothing(w, i, lane);
    if (!is_new(w, i, scratch ? OUTSIDE_SCRATCH : OUTSIDE_GROUP))
        return;
    softgpu_report_begin(&report, scratch ? "outside-scratch" : "outside-workgroup-memory");
    put_access(&report, w, i, lane, va, bytes);
    softgpu_report_number(&report, "size", scratch ? d->scratch_lane_size : d->lds_size);
    softgpu_report_end(&report);
}

/* ---- barriers that not all work items of a workgroup reach ---- */

/* Returns the lanes with which a wave began. */
static uint64_t lanes_of(const struct wave *w) {
    const uint32_t *size = w->group->size;
    const uint32_t left = size[0] * size[1] * size[2] - (uint32_t)w->index * LANES;
    return left >= LANES ? UINT64_MAX : (UINT64_C(1) << left) - 1;
}

static void report_barrier(struct wave *w, const struct inst *i, const char *what, unsigned here,
                           unsigned all) {
    struct softgpu_report report;
    if (!w->group->dispatch->launch || !is_new(w, i, BARRIER))
        return;
    softgpu_report_begin(&report, "divergent-barrier");
    put_lane(&report, w, i, -1);
    softgpu_report_text(&report, "parts", what);
    softgpu_report_number(&report, "here", here);
    softgpu_report_number(&report, "all", all);
    softgpu_report_end(&report);
}

void softgpu_check_barrier(struct wave *w, const struct inst *i) {
    const uint64_t all = lanes_of(w), here = wave_exec(w) & all;
    if (here != all)
        report_barrier(w, i, "lanes", (unsigned)__builtin_popcountll(here),
                       (unsigned)__builtin_popcountll(all));
}

void softgpu_check_barrier_waves(struct group *g) {
    struct wave *waits = NULL;
    unsigned here = 0;
    for (unsigned n = 0; n < g->wave_count; n++)
        if (g->waves[n]->stop == AT_BARRIER && ++here)
            waits = g->waves[n];
    if (waits && here < g->wave_count)
        report_barrier(waits, waits->next - 1, "waves", here, g->wave_count);
}

/* ---- undefined bits ---- */

static void put_origin(struct softgpu_report *report, const struct dispatch *d,
                       const struct softgpu_origin *origin) {
    static const char *const names[] = {
        [SOFTGPU_REGISTER] = "register",
        [SOFTGPU_GLOBAL] = "global",
        [SOFTGPU_WORKGROUP] = "workgroup",
        [SOFTGPU_SCRATCH] = "scratch",
    };
    struct softgpu_block block;
    softgpu_report_text(report, "memory", names[origin->memory]);
    if (!origin->inst)
        return;
    softgpu_report_open(report, "other");
    put_instruction(report, d->target, d->entry, origin->inst, origin->pc);
    softgpu_report_number(report, "address", origin->va);
    softgpu_report_close(report);
    if (origin->memory == SOFTGPU_GLOBAL && softgpu_shadow_holds(origin->va, &block))
        softgpu_report_block(report, &block);
}

void softgpu_report_use(struct wave *w, const struct inst *i, int lane, const char *use,
                        const struct softgpu_origin *origin) {
    struct softgpu_report report;
    if (!w->group->dispatch->launch || !is_new(w, i, UNINITIALISED))
        return;
    softgpu_report_begin(&report, "uninitialised");
    put_lane(&report, w, i, lane);
    softgpu_report_text(&report, "use", use);
    put_origin(&report, w->group->dispatch, origin);
    softgpu_report_end(&report);
}

/* Finds the defined bits of the memory that each lane accesses, and stores pointers to these bits
 * in `at`. defined_memory.c later reads `at`. */
static void find_bits(struct wave *w, const struct allowed *range, const uint64_t *va,
                      uint64_t mask) {
    struct softgpu_defined *d = w->defined;
    if (!d)
        return;
    for (uint64_t m = mask; m; m &= m - 1) {
        int l = __builtin_ctzll(m);
        d->at[l] = range && range->bits ? range->bits + (va[l] - range->low) : NULL;
        d->va[l] = va[l];
    }
    d->to_host |= range && range->registered ? mask : 0;
}

/* ---- races ---- */

void softgpu_check_launch(struct dispatch *d) {
    softgpu_race_launch(d, is_hips(d));
}

/* Decodes the instruction of the conflicting access from memory. */
static bool read_instruction(enum target_mask target, uint64_t pc, struct inst *i) {
    struct softgpu_range range;
    if (!softgpu_find_range(pc, &range))
        return false;
    uint32_t words[3] = {0};
    uint64_t left = range.size - (pc - range.va);
    size_t count = left < sizeof words ? left / 4 : 3;
    memcpy(words, range.host + (pc - range.va), 4 * count);
    return softgpu_decode(target, words, count, i);
}

static void put_other(struct softgpu_report *report, const struct dispatch *d,
                      struct softgpu_stamp other) {
    const uint32_t group[3] = {other.group % d->groups[0],
                               other.group / d->groups[0] % d->groups[1],
                               other.group / d->groups[0] / d->groups[1]};
    struct inst i;
    uint64_t pc;
    softgpu_report_open(report, "other");
    put_wave(report, group, other.wave);
    if (softgpu_stamp_place(d, other, &pc) && read_instruction(d->target, pc, &i))
        put_instruction(report, d->target, d->entry, &i, pc);
    softgpu_report_close(report);
}

void softgpu_report_other(struct softgpu_report *report, uint32_t number, uint64_t pc,
                          const char *access) {
    const struct softgpu_op *op = softgpu_op_at(number);
    struct inst i;
    char kernel[512];
    softgpu_report_open(report, "other");
    softgpu_report_op(report, number);
    if (op->object) {
        softgpu_kernel_name(op->object, kernel, sizeof kernel);
        softgpu_report_text(report, "kernel", kernel);
    }
    if (pc && read_instruction(op->target, pc, &i))
        put_instruction(report, op->target, op->entry, &i, pc);
    else if (access)
        softgpu_report_text(report, "access", access);
    softgpu_report_close(report);
}

/* Reports a race between a launch and an op that is not ordered before the launch. */
static void report_stream_race(struct wave *w, const struct inst *i,
                               const struct softgpu_conflict *found, unsigned bytes) {
    static const char kind[] = "stream-race";
    const struct dispatch *d = w->group->dispatch;
    struct softgpu_report report;
    struct softgpu_block block;
    const bool forgiven = softgpu_is_over(found->op, d->clock, SOFTGPU_STOCK);
    if (!softgpu_report_pair_new(kind, &softgpu_op_at(d->launch)->place, found->op,
                                 SOFTGPU_EXPLICIT))
        return;
    softgpu_report_begin(&report, kind);
    put_access(&report, w, i, i->encoding == E_SMEM ? -1 : found->lane, found->va, bytes);
    softgpu_report_op(&report, d->launch);
    softgpu_report_other(&report, found->op, found->pc, found->other_writes ? "store" : "load");
    softgpu_report_text(&report, "forgiven", forgiven ? "yes" : "no");
    if (softgpu_shadow_holds(found->va, &block))
        softgpu_report_block(&report, &block);
    softgpu_report_end(&report);
}

static void report_race(struct wave *w, const struct inst *i, const struct softgpu_conflict *found,
                        unsigned bytes, bool lds) {
    const struct dispatch *d = w->group->dispatch;
    struct softgpu_report report;
    uint64_t pc = w->code->va + i->offset, other;
    bool known = softgpu_stamp_place(d, found->other, &other);
    const uint64_t key[] = {d->packet->kernel_object, known && other < pc ? other : pc,
                            known && other < pc ? pc : other, RACE};
    if (!softgpu_report_new(key, sizeof key / sizeof *key))
        return;
    softgpu_report_begin(&report, "race");
    put_access(&report, w, i, i->encoding == E_SMEM ? -1 : found->lane, found->va, bytes);
    softgpu_report_text(&report, "memory", lds ? "workgroup" : "global");
    put_other(&report, d, found->other);
    if (!lds) {
        struct softgpu_block block;
        if (softgpu_shadow_holds(found->va, &block))
            softgpu_report_block(&report, &block);
    }
    softgpu_report_end(&report);
}

void softgpu_check_lds(struct wave *w, const struct inst *i, const uint32_t *offset, uint64_t mask,
                       unsigned bytes) {
    struct softgpu_conflict found = softgpu_race_lds(w, i, offset, mask, bytes);
    if (found.found)
        report_race(w, i, &found, bytes, true);
}

/* Looks for copies and fills that race with the lanes' accesses, and reports the first race. */
static void check_moves(struct wave *w, const struct inst *i, const struct allowed *range,
                        const uint64_t *va, uint64_t mask, unsigned bytes) {
    for (uint64_t m = mask; m; m &= m - 1) {
        struct softgpu_conflict found = {.lane = __builtin_ctzll(m)};
        found.va = va[found.lane];
        found.op = softgpu_past_conflict(range->past, w->group->dispatch->clock, found.va, bytes,
                                         writes(i), &found.other_writes);
        if (!found.op)
            continue;
        report_stream_race(w, i, &found, bytes);
        return;
    }
}

/* Looks for a race between an instruction's accesses to one permitted range and earlier accesses,
 * and reports the race. */
static void check_race(struct wave *w, const struct inst *i, const struct allowed *range,
                       const uint64_t *va, uint64_t mask, unsigned bytes) {
    if (!range || !range->cells || !w->group->race)
        return;
    struct softgpu_conflict found =
        softgpu_race_global(w, i, range->cells, range->low, va, mask, bytes,
                            range->past ? w->group->dispatch->clock : NULL);
    if (found.op)
        report_stream_race(w, i, &found, bytes);
    else if (found.found)
        report_race(w, i, &found, bytes, false);
    if (range->past)
        check_moves(w, i, range, va, mask, bytes);
    if (range->alloc)
        softgpu_check_alloc(range->alloc, w->group->dispatch->launch, w->group->dispatch->clock,
                            range->low);
}

void softgpu_check_stopped(const char *text) {
    struct softgpu_report report;
    softgpu_report_begin(&report, "stopped");
    softgpu_report_text(&report, "text", text);
    softgpu_report_end(&report);
}

/* ---- accesses ---- */

/* Returns true for a scalar load that also reads bytes beyond the block's end. LLVM widens a small
 * load to an aligned dword, and widens a load of three dwords to four dwords. The kernel does not
 * use the extra bytes. */
static bool is_widened(const struct inst *i, uint64_t va, unsigned bytes,
                       const struct softgpu_finding *finding) {
    enum { WIDEST = 16 };
    return i->encoding == E_SMEM && !writes(i) && finding->verdict == SOFTGPU_OUTSIDE &&
           bytes <= WIDEST && va % bytes == 0 && va - finding->block.va < finding->block.size;
}

/* Notes a launch's first store to memory of the host. A load permits no later store to such memory,
 * so that this store is not missed. */
static void note_store(const struct dispatch *d, uint64_t va, const char *memory) {
    char kernel[256];
    if (!d->launch)
        return;
    softgpu_kernel_name(d->packet->kernel_object, kernel, sizeof kernel);
    softgpu_wrote_host(d->launch, va, memory, kernel);
}

/* Returns false if the caller must skip the access. Otherwise sets *allowed to the range of the
 * access, or to NULL if nothing is known of the range. */
static bool check(struct wave *w, const struct inst *i, int lane, uint64_t va, unsigned bytes,
                  const struct allowed **allowed) {
    struct softgpu_range range;
    bool store = writes(i);
    const struct dispatch *d = w->group->dispatch;
    *allowed = find_known(d, va, bytes, store);
    if (*allowed)
        return true;
    struct softgpu_finding finding = softgpu_shadow_find(va, bytes);
    if (finding.verdict != SOFTGPU_ALLOWED) {
        if (is_widened(i, va, bytes, &finding) || is_hips(d))
            return true;
        report_finding(w, i, lane, va, bytes, &finding);
        return false;
    }
    bool code = find_code_object(va, &range);
    if (store && code && is_read_only(va, &range) && !is_hips(d)) {
        report_read_only(w, i, lane, va, bytes);
        return false;
    }
    bool of_host = finding.registered || finding.shared;
    if (store && of_host)
        note_store(d, va, finding.registered ? "registered" : "host_shared");
    *allowed = remember(d, &finding, !code && (store || !of_host));
    return true;
}

/* Finds the defined bits of a scalar access. If a vector access crosses a buffer's bound, all
 * accessed bytes count as defined. */
static void check_bits(struct wave *w, const struct inst *i, const struct allowed *range, int lane,
                       uint64_t va, unsigned bytes) {
    struct softgpu_defined *d = w->defined;
    if (!d)
        return;
    uint64_t addresses[LANES];
    addresses[lane] = va;
    find_bits(w, range, addresses, UINT64_C(1) << lane);
    d->have = bytes;
    if (i->encoding == E_SMEM)
        return;
    if (writes(i) && d->at[lane])
        memset(d->at[lane], 0xff, bytes);
    d->at[lane] = NULL;
}

bool softgpu_check_access(struct wave *w, const struct inst *i, int lane, uint64_t va,
                          unsigned bytes) {
    if (bytes == 0)
        return true;
    const struct allowed *range;
    if (!check(w, i, lane, va, bytes, &range))
        return false;
    uint64_t addresses[LANES];
    int first = lane < 0 ? 0 : lane;
    addresses[first] = va;
    check_race(w, i, range, addresses, UINT64_C(1) << first, bytes);
    check_bits(w, i, range, first, va, bytes);
    return true;
}

/* Every cache instruction except a write-back lets a wave see the stores of other waves. */
void softgpu_check_cache(struct wave *w, const struct inst *i) {
    if (strcmp(i->row->name, "buffer_wbl2") != 0)
        softgpu_race_acquire(w);
}

uint64_t softgpu_check_lanes(struct wave *w, const struct inst *i, const uint64_t *va,
                             uint64_t mask) {
    const struct dispatch *d = w->group->dispatch;
    unsigned bytes = softgpu_move_bytes(move_of(i->row));
    uint64_t low = UINT64_MAX, high = 0, allowed = mask;
    if (!bytes || !mask)
        return mask;
    for (uint64_t m = mask; m; m &= m - 1) {
        int l = __builtin_ctzll(m);
        low = va[l] < low ? va[l] : low;
        high = va[l] > high ? va[l] : high;
    }
    const struct allowed *range =
        high - low < UINT64_MAX - bytes ? find_known(d, low, high - low + bytes, writes(i)) : NULL;
    if (range) {
        check_race(w, i, range, va, mask, bytes);
        find_bits(w, range, va, mask);
        return mask;
    }
    for (uint64_t m = mask; m; m &= m - 1) {
        int l = __builtin_ctzll(m);
        uint64_t lane = UINT64_C(1) << l;
        if (check(w, i, l, va[l], bytes, &range)) {
            check_race(w, i, range, va, lane, bytes);
            find_bits(w, range, va, lane);
            continue;
        }
        allowed &= ~lane;
        load_nothing(w, i, l);
    }
    return allowed;
}
