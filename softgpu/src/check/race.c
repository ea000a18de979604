#include "race.h"
#include "hooks.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { NO_PLACE = (1 << 14) - 1, LAST_EPOCH = UINT16_MAX, MOST_GROUPS = 1 << 24 };

/* Atomic accesses do not race with each other. LOCKING accesses do not race with plain accesses. A
 * compiler may use one instruction for an atomic store and for a plain store. A compare-and-swap
 * loop also begins with a plain load. COUNTING accesses, such as sums and minima, race with plain
 * accesses. */
enum access_kind { PLAIN, LOCKING, COUNTING };

struct softgpu_race {
    uint32_t launch, group;
    uint16_t epoch;
    bool observed; /* an atomic access has returned a value that another group may have written */
    bool synchronised;              /* the workgroup has synchronised with other workgroups */
    uint16_t seen[WAVES_PER_GROUP]; /* seen[w]: bits of waves that w observed since the barrier */
    struct softgpu_cell *lds;
    size_t lds_cells;
};

/* ---- cells ---- */

static size_t count_cells(uint64_t va, uint64_t size) {
    return (size_t)((va + size + 3) / 4 - va / 4);
}

struct softgpu_cell *softgpu_cells_begin(uint64_t va, uint64_t size) {
    enum { FLAGS = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE };
    size_t bytes = count_cells(va, size) * sizeof(struct softgpu_cell);
    void *cells = mmap(NULL, bytes, PROT_READ | PROT_WRITE, FLAGS, -1, 0);
    return cells == MAP_FAILED ? NULL : cells;
}

void softgpu_cells_end(struct softgpu_cell *cells, uint64_t va, uint64_t size) {
    if (cells)
        munmap(cells, count_cells(va, size) * sizeof *cells);
}

void softgpu_cells_clear(struct softgpu_cell *cells, uint64_t va, uint64_t size) {
    if (cells)
        madvise(cells, count_cells(va, size) * sizeof *cells, MADV_DONTNEED);
}

/* ---- locks: each is for the cells of 256 bytes, and of others far off ---- */

enum { LOCKS = 1024, CELLS_A_LOCK = 64 };
static bool locks[LOCKS];

static bool *lock_of(const struct softgpu_cell *cell) {
    return &locks[(uintptr_t)cell / (CELLS_A_LOCK * sizeof *cell) % LOCKS];
}

static void take(bool *lock) {
    while (__atomic_test_and_set(lock, __ATOMIC_ACQUIRE))
        ;
}

static void drop(bool *lock) {
    if (lock)
        __atomic_clear(lock, __ATOMIC_RELEASE);
}

/* ---- launches, workgroups, barriers ---- */

void softgpu_race_launch(struct dispatch *d, bool hips) {
    d->launch = hips || d->group_count > MOST_GROUPS ? 0 : softgpu_launch_of(d);
}

void softgpu_race_group_begin(struct group *g, uint64_t number) {
    const struct dispatch *d = g->dispatch;
    g->race = d->launch ? calloc(1, sizeof *g->race) : NULL;
    if (!g->race)
        return;
    g->race->launch = d->launch;
    g->race->group = (uint32_t)number;
    g->race->lds_cells = (d->lds_size + 3) / 4;
    g->race->lds = calloc(g->race->lds_cells, sizeof *g->race->lds);
}

void softgpu_race_group_end(struct group *g) {
    if (g->race)
        free(g->race->lds);
    free(g->race);
    g->race = NULL;
}

void softgpu_race_barrier(struct group *g) {
    struct softgpu_race *race = g->race;
    if (!race)
        return;
    race->epoch += race->epoch < LAST_EPOCH;
    memset(race->seen, 0, sizeof race->seen);
}

void softgpu_race_grid_barrier(struct wave *w) {
    if (w->group->race)
        w->group->race->synchronised = true;
}

void softgpu_race_acquire(struct wave *w) {
    struct softgpu_race *race = w->group->race;
    if (race && race->observed)
        race->synchronised = true;
}

/* ---- what an instruction does ---- */

struct way {
    bool reads, writes;
    enum access_kind kind;
    struct softgpu_stamp stamp; /* the access's stamp without `bytes` */
};

static enum access_kind kind_of_atomic(enum atomic_op op) {
    switch (op) {
    case SWAP:
    case CMPSWAP:
    case AND:
    case OR:
    case XOR:
    case MSKOR:
    case WRAP:
    case DS_CMPSWAP:
    case DS_CMPSWAP_F:
        return LOCKING;
    default:
        return COUNTING;
    }
}

static struct way way_of(const struct wave *w, const struct inst *i) {
    const struct dispatch *d = w->group->dispatch;
    enum move move = move_of(i->row);
    bool atomic = i->encoding != E_SMEM && (move == MV_ATOMIC_32 || move == MV_ATOMIC_64);
    bool data = i->encoding != E_SMEM && i->src[1].kind != O_NONE;
    struct way way = {.reads = i->dst.kind != O_NONE, .writes = data || atomic};
    if (i->encoding == E_SMEM) {
        way.writes = strstr(i->row->name, "store") != NULL;
        way.reads = !way.writes;
    } else if (atomic) {
        way.kind = kind_of_atomic(atomic_of(i->row));
    } else if (i->encoding == E_DS ? way.reads && way.writes : i->glc || i->scc) {
        way.kind = LOCKING;
    }
    uint64_t place = (w->code->va + i->offset - d->entry) / 4;
    way.stamp = (struct softgpu_stamp){.group = w->group->race->group,
                                       .wave = w->index & 15,
                                       .epoch = w->group->race->epoch,
                                       .kind = way.kind & 3,
                                       .place = place < NO_PLACE ? place & NO_PLACE : NO_PLACE};
    return way;
}

bool softgpu_stamp_place(const struct dispatch *d, struct softgpu_stamp stamp, uint64_t *pc) {
    *pc = d->entry + 4 * (uint64_t)stamp.place;
    return stamp.place != NO_PLACE;
}

/* Returns the register that contains a store's data. If an instruction stores two registers at two
 * addresses, `at` selects the register. */
static unsigned data_register(const struct wave *w, const struct inst *i, int lane, uint64_t at,
                              unsigned bytes) {
    enum move move = move_of(i->row);
    bool far = move == DS_WRITE2ST64_32 || move == DS_WRITE2ST64_64;
    if (move != DS_WRITE2_32 && move != DS_WRITE2_64 && !far)
        return i->src[1].reg;
    uint32_t first = w->v[i->src[0].reg][lane] + ((uint32_t)i->imm & 0xff) * bytes * (far ? 64 : 1);
    return i->src[at == first ? 1 : 2].reg;
}

/* Copies the bytes that a lane stores, at most 16. */
static void stored_bytes(const struct wave *w, const struct inst *i, int lane, uint64_t at,
                         unsigned bytes, uint8_t *data) {
    enum move move = move_of(i->row);
    unsigned reg = data_register(w, i, lane, at, bytes);
    for (unsigned n = 0; n < (bytes + 3) / 4; n++)
        memcpy(data + 4 * n, &w->v[reg + n][lane], 4);
    if (move == MV_STORE_8_HI || move == MV_STORE_16_HI)
        memcpy(data, data + 2, 2);
}

/* ---- the order ---- */

static bool is_by(struct softgpu_stamp stamp, const struct way *way) {
    return stamp.group == way->stamp.group && stamp.wave == way->stamp.wave;
}

static bool is_ordered(const struct softgpu_race *race, struct softgpu_stamp before,
                       const struct way *way) {
    if (before.group != way->stamp.group)
        return race->synchronised;
    return before.wave == way->stamp.wave || before.epoch < race->epoch ||
           race->epoch == LAST_EPOCH || race->seen[way->stamp.wave] >> before.wave & 1;
}

static bool may_meet(enum access_kind a, enum access_kind b) {
    if (a != PLAIN && b != PLAIN)
        return true;
    return a == LOCKING || b == LOCKING;
}

static bool conflicts(const struct softgpu_race *race, struct softgpu_stamp before,
                      const struct way *way, unsigned bytes) {
    return before.bytes & bytes && !is_ordered(race, before, way) &&
           !may_meet((enum access_kind)before.kind, way->kind);
}

/* Records that an atomic access has observed the wave that wrote the value. The access has also
 * observed all waves that the writing wave had observed. */
static void observe(struct softgpu_race *race, const struct softgpu_cell *cell,
                    const struct way *way) {
    race->observed = true;
    if (!cell->write.bytes || cell->write.group != way->stamp.group ||
        cell->write.epoch != way->stamp.epoch)
        return;
    unsigned other = cell->write.wave;
    race->seen[way->stamp.wave] |= (uint16_t)(1u << other | race->seen[other]);
}

/* ---- one cell ---- */

/* Two stores of an equal value do not race, because their order has no effect. */
static bool is_same_value(const struct softgpu_cell *cell, const struct way *way, unsigned bytes,
                          uint32_t value) {
    unsigned both = cell->write.bytes & bytes;
    uint32_t differs = cell->value ^ value;
    if (way->kind == COUNTING || cell->write.kind == COUNTING)
        return false;
    for (unsigned n = 0; n < 4; n++)
        if (both >> n & 1 && differs >> 8 * n & 0xff)
            return false;
    return true;
}

static void note_read(struct softgpu_cell *cell, struct softgpu_stamp stamp,
                      const struct way *way) {
    struct softgpu_stamp *last = &cell->read[0], *other = &cell->read[1];
    if (last->bytes && !is_by(*last, way) &&
        (last->group != stamp.group || !other->bytes || other->group == stamp.group))
        *other = *last;
    *last = stamp;
}

static void note_write(struct softgpu_cell *cell, struct softgpu_stamp stamp, uint32_t value) {
    enum { WHOLE = 15 };
    uint32_t kept = 0;
    for (unsigned n = 0; n < 4; n++)
        if (!(stamp.bytes >> n & 1))
            kept |= UINT32_C(0xff) << 8 * n;
    if (stamp.bytes == WHOLE)
        memset(cell->read, 0, sizeof cell->read);
    if (cell->write.bytes && cell->write.group == stamp.group && cell->write.wave == stamp.wave &&
        cell->write.epoch == stamp.epoch)
        stamp.bytes |= cell->write.bytes;
    cell->write = stamp;
    cell->value = (cell->value & kept) | (value & ~kept);
}

/* ---- earlier launches ---- */

static struct softgpu_trace trace_of(uint32_t launch, struct softgpu_stamp stamp) {
    return (struct softgpu_trace){
        .op = launch, .bytes = stamp.bytes, .kind = stamp.kind, .place = stamp.place};
}

/* Records that an earlier launch read the dword. The cell keeps the latest reads of two streams. */
static void note_past_read(struct softgpu_cell *cell, struct softgpu_trace trace) {
    const struct softgpu_op *op = softgpu_op_at(trace.op);
    unsigned n = 0;
    while (n < 2 && cell->past_read[n].bytes &&
           softgpu_op_at(cell->past_read[n].op)->slot != op->slot)
        n++;
    if (n == 2)
        n = cell->past_read[0].op < cell->past_read[1].op ? 0 : 1;
    cell->past_read[n] = trace;
}

/* Turns the stamps of the previous launch into traces when a launch first accesses a cell. */
static void begin_launch(struct softgpu_cell *cell, uint32_t launch) {
    enum { WHOLE = 15 };
    if (cell->write.bytes == WHOLE)
        memset(cell->past_read, 0, sizeof cell->past_read);
    if (cell->write.bytes)
        cell->past_write = trace_of(cell->launch, cell->write);
    for (unsigned n = 0; n < 2; n++)
        if (cell->read[n].bytes)
            note_past_read(cell, trace_of(cell->launch, cell->read[n]));
    memset(&cell->write, 0, sizeof cell->write);
    memset(cell->read, 0, sizeof cell->read);
    cell->launch = launch;
}

static bool meets_unordered(struct softgpu_trace trace, const struct way *way, unsigned bytes,
                            const struct softgpu_clock *clock) {
    return trace.bytes & bytes && !may_meet((enum access_kind)trace.kind, way->kind) &&
           !softgpu_is_over(trace.op, clock);
}

static void note_conflict(struct softgpu_conflict *found, struct softgpu_trace trace, bool writes) {
    const struct softgpu_op *op = softgpu_op_at(trace.op);
    found->found = true;
    found->op = trace.op;
    found->pc = trace.place != NO_PLACE ? op->entry + 4 * (uint64_t)trace.place : 0;
    found->other_writes = writes;
}

/* Returns true and sets `found` if an access to a dword races with an access of an earlier
 * launch. */
static bool compare_past(const struct softgpu_cell *cell, const struct way *way, unsigned bytes,
                         uint32_t value, const struct softgpu_clock *clock,
                         struct softgpu_conflict *found) {
    const struct softgpu_cell before = {
        .write = {.bytes = cell->past_write.bytes, .kind = cell->past_write.kind},
        .value = cell->value};
    if (meets_unordered(cell->past_write, way, bytes, clock) &&
        (way->reads || !is_same_value(&before, way, bytes, value))) {
        note_conflict(found, cell->past_write, true);
        return true;
    }
    for (unsigned n = 0; n < 2 && way->writes; n++)
        if (meets_unordered(cell->past_read[n], way, bytes, clock)) {
            note_conflict(found, cell->past_read[n], false);
            return true;
        }
    return false;
}

/* Returns a copy of a cell, in which all stamps have become traces. */
static struct softgpu_cell traces_of(const struct softgpu_cell *cell) {
    bool *lock = lock_of(cell);
    take(lock);
    struct softgpu_cell traces = *cell;
    drop(lock);
    begin_launch(&traces, 0);
    return traces;
}

uint32_t softgpu_race_writer(const struct softgpu_cell *cells, uint64_t begin, uint64_t va,
                             uint64_t *pc) {
    struct softgpu_conflict found = {0};
    struct softgpu_trace trace = traces_of(cells + (va / 4 - begin / 4)).past_write;
    if (trace.bytes >> va % 4 & 1)
        note_conflict(&found, trace, true);
    *pc = found.pc;
    return found.op;
}

struct softgpu_conflict softgpu_race_move(struct softgpu_cell *cells, uint64_t begin, uint64_t va,
                                          uint64_t bytes, bool writes,
                                          const struct softgpu_clock *clock) {
    struct softgpu_conflict found = {0};
    const struct way way = {.reads = !writes, .writes = writes, .kind = PLAIN};
    for (uint64_t at = va & ~UINT64_C(3); at < va + bytes && !found.found; at += 4) {
        const struct softgpu_cell now = traces_of(cells + (at / 4 - begin / 4));
        unsigned from = at < va ? (unsigned)(va - at) : 0;
        unsigned to = va + bytes - at < 4 ? (unsigned)(va + bytes - at) : 4;
        /* The data of a copy or fill is unknown here, so `~now.value` makes all bytes differ. */
        if (compare_past(&now, &way, (1u << to) - (1u << from), ~now.value, clock, &found))
            found.va = at + from;
    }
    return found;
}

/* Records an access to some bytes of a dword. If the access conflicts with an earlier access,
 * returns true and stores the earlier access in *other. */
static bool enter(struct softgpu_race *race, struct softgpu_cell *cell, const struct way *way,
                  unsigned bytes, uint32_t value, struct softgpu_stamp *other) {
    struct softgpu_stamp stamp = way->stamp;
    stamp.bytes = bytes & 15;
    if (way->kind != PLAIN && way->reads)
        observe(race, cell, way);
    *other = cell->write;
    bool conflict = conflicts(race, *other, way, bytes) &&
                    (way->reads || !is_same_value(cell, way, bytes, value));
    for (unsigned n = 0; n < 2 && way->writes && !conflict; n++) {
        *other = cell->read[n];
        conflict = conflicts(race, *other, way, bytes);
    }
    if (way->reads)
        note_read(cell, stamp, way);
    if (way->writes)
        note_write(cell, stamp, value);
    return conflict;
}

/* ---- a wave's accesses ---- */

/* Records that a lane accesses `bytes` bytes from `at` on. The first of `cells` belongs to the
 * first dword. */
static void enter_lane(struct wave *w, const struct inst *i, const struct way *way, int lane,
                       uint64_t at, unsigned bytes, struct softgpu_cell *cells, uint32_t launch,
                       const struct softgpu_clock *clock, struct softgpu_conflict *found) {
    uint8_t data[24] = {0};
    unsigned shift = at % 4, end = shift + bytes;
    if (way->writes && way->kind == PLAIN && lane >= 0)
        stored_bytes(w, i, lane, at, bytes, data + shift);
    for (unsigned done = 0; done < end; done += 4, cells++) {
        struct softgpu_stamp other;
        unsigned from = done ? 0 : shift, to = end - done < 4 ? end - done : 4;
        unsigned mask = (1u << to) - (1u << from);
        uint32_t value;
        memcpy(&value, data + done, 4);
        if (cells->launch != launch)
            begin_launch(cells, launch);
        if (clock && !found->found && compare_past(cells, way, mask, value, clock, found)) {
            found->lane = lane;
            found->va = at;
        }
        if (!enter(w->group->race, cells, way, mask, value, &other) || found->found)
            continue;
        *found = (struct softgpu_conflict){.found = true, .lane = lane, .va = at, .other = other};
    }
}

struct softgpu_conflict softgpu_race_global(struct wave *w, const struct inst *i,
                                            struct softgpu_cell *cells, uint64_t begin,
                                            const uint64_t *va, uint64_t mask, unsigned bytes,
                                            const struct softgpu_clock *clock) {
    struct softgpu_conflict found = {0};
    const struct way way = way_of(w, i);
    bool *held = NULL;
    for (uint64_t m = mask; m; m &= m - 1) {
        int l = __builtin_ctzll(m);
        struct softgpu_cell *first = cells + (va[l] / 4 - begin / 4);
        bool *lock = lock_of(first);
        if (lock != held) {
            drop(held);
            take(held = lock);
        }
        enter_lane(w, i, &way, l, va[l], bytes, first, w->group->race->launch, clock, &found);
    }
    drop(held);
    return found;
}

struct softgpu_conflict softgpu_race_lds(struct wave *w, const struct inst *i,
                                         const uint32_t *offset, uint64_t mask, unsigned bytes) {
    struct softgpu_conflict found = {0};
    struct softgpu_race *race = w->group->race;
    if (!race || !race->lds)
        return found;
    const struct way way = way_of(w, i);
    for (uint64_t m = mask; m; m &= m - 1) {
        int l = __builtin_ctzll(m);
        enter_lane(w, i, &way, l, offset[l], bytes, race->lds + offset[l] / 4, 0, NULL, &found);
    }
    return found;
}
