#include "race.h"
#include "hooks.h"

#include <stdlib.h>

enum { LAST_EPOCH = UINT16_MAX, MOST_GROUPS = 1 << 24 };

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
    struct softgpu_cells lds;       /* `cells` is NULL if memory is exhausted */
};

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
    g->race->lds.count = (d->lds_size + 3) / 4;
    g->race->lds.cells = calloc(g->race->lds.count, sizeof *g->race->lds.cells);
}

void softgpu_race_group_end(struct group *g) {
    if (g->race) {
        free(g->race->lds.cells);
        free(g->race->lds.atomics);
    }
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
                                       .place = place < SOFTGPU_NO_PLACE ? place & SOFTGPU_NO_PLACE
                                                                         : SOFTGPU_NO_PLACE};
    return way;
}

bool softgpu_stamp_place(const struct dispatch *d, struct softgpu_stamp stamp, uint64_t *pc) {
    *pc = d->entry + 4 * (uint64_t)stamp.place;
    return stamp.place != SOFTGPU_NO_PLACE;
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

static bool is_ordered(const struct softgpu_race *race, struct softgpu_stamp before,
                       const struct way *way) {
    if (before.group != way->stamp.group)
        return race->synchronised;
    return before.wave == way->stamp.wave || before.epoch < race->epoch ||
           race->epoch == LAST_EPOCH || race->seen[way->stamp.wave] >> before.wave & 1;
}

static bool meets(const struct softgpu_race *race, struct softgpu_stamp before,
                  const struct way *way, unsigned bytes) {
    return before.bytes & bytes && !is_ordered(race, before, way);
}

/* Records that an atomic access has observed the wave that wrote the value. The access has also
 * observed all waves that the writing wave had observed. */
static void observe(struct softgpu_race *race, struct softgpu_stamp writer, const struct way *way) {
    race->observed = true;
    if (!writer.bytes || writer.group != way->stamp.group || writer.epoch != way->stamp.epoch)
        return;
    unsigned other = writer.wave;
    race->seen[way->stamp.wave] |= (uint16_t)(1u << other | race->seen[other]);
}

/* ---- one dword ---- */

/* Returns true if an access races with a write that it meets. Two stores of an equal value do not
 * race, because their order has no effect. `both`: the bytes that both access. */
static bool differs(const struct softgpu_cell *cell, const struct way *way, unsigned both,
                    uint32_t value) {
    uint32_t difference = cell->value ^ value;
    if (way->reads || way->kind == COUNTING)
        return true;
    for (unsigned n = 0; n < 4; n++)
        if (both >> n & 1 && difference >> 8 * n & 0xff)
            return true;
    return false;
}

/* Returns true if an access races with an earlier access of this launch, and stores the earlier
 * access in *other. `atomics` may be NULL. */
static bool compare(const struct softgpu_race *race, const struct softgpu_cell *cell,
                    const struct softgpu_atomics *atomics, const struct way *way, unsigned bytes,
                    uint32_t value, struct softgpu_stamp *other) {
    if (way->kind == LOCKING)
        return false;
    *other = cell->write;
    if (meets(race, *other, way, bytes) && differs(cell, way, other->bytes & bytes, value))
        return true;
    for (unsigned n = 0; n < 2 && way->writes; n++) {
        *other = cell->read[n];
        if (meets(race, *other, way, bytes))
            return true;
    }
    for (unsigned n = 0; n < 2 && atomics && way->kind == PLAIN; n++) {
        *other = atomics->sum[n];
        if (meets(race, *other, way, bytes))
            return true;
    }
    return false;
}

static void record(struct softgpu_cell *cell, struct softgpu_atomics *atomics,
                   const struct way *way, unsigned bytes, uint32_t value) {
    struct softgpu_stamp stamp = way->stamp;
    stamp.bytes = bytes & 15;
    if (way->kind == PLAIN) {
        if (way->reads)
            softgpu_stamp_note(cell->read, stamp);
        if (way->writes)
            softgpu_cell_write(cell, atomics, stamp, value);
        return;
    }
    if (way->kind == COUNTING && atomics)
        softgpu_stamp_note(atomics->sum, stamp);
    if (way->writes && atomics)
        atomics->last = stamp;
}

/* Records an access to some bytes of a dword. If the access races with an earlier access of this
 * launch, returns true and stores the earlier access in *other.
 *
 * The access is compared before it observes other waves: in another run an atomic access may come
 * before the writes that it observes here. */
static bool enter(struct softgpu_race *race, struct softgpu_cell *cell,
                  struct softgpu_atomics *atomics, const struct way *way, unsigned bytes,
                  uint32_t value, struct softgpu_stamp *other) {
    bool races = compare(race, cell, atomics, way, bytes, value, other);
    if (way->kind != PLAIN && way->reads)
        observe(race, softgpu_cell_last(cell, atomics), way);
    record(cell, atomics, way, bytes, value);
    return races;
}

/* ---- earlier launches ---- */

static bool meets_past(struct softgpu_trace trace, unsigned bytes,
                       const struct softgpu_clock *clock) {
    return trace.bytes & bytes && !softgpu_is_over(trace.op, clock, SOFTGPU_LIBRARY);
}

static bool note_conflict(struct softgpu_conflict *found, struct softgpu_trace trace, bool writes) {
    const struct softgpu_op *op = softgpu_op_at(trace.op);
    found->found = true;
    found->op = trace.op;
    found->pc = trace.place != SOFTGPU_NO_PLACE ? op->entry + 4 * (uint64_t)trace.place : 0;
    found->other_writes = writes;
    return true;
}

/* Returns true and sets `found` if an access to a dword races with an access of an earlier launch.
 * `atomics` may be NULL. */
static bool compare_past(const struct softgpu_cell *cell, const struct softgpu_atomics *atomics,
                         const struct way *way, unsigned bytes, uint32_t value,
                         const struct softgpu_clock *clock, struct softgpu_conflict *found) {
    if (way->kind == LOCKING)
        return false;
    if (meets_past(cell->past_write, bytes, clock) &&
        differs(cell, way, cell->past_write.bytes & bytes, value))
        return note_conflict(found, cell->past_write, true);
    for (unsigned n = 0; n < 2 && way->writes; n++)
        if (meets_past(cell->past_read[n], bytes, clock))
            return note_conflict(found, cell->past_read[n], false);
    for (unsigned n = 0; n < 2 && atomics && way->kind == PLAIN; n++)
        if (meets_past(atomics->past_sum[n], bytes, clock))
            return note_conflict(found, atomics->past_sum[n], true);
    return false;
}

/* Copies a dword's record, and turns all stamps of the copy into traces. */
static void copy_traces(const struct softgpu_cells *cells, size_t number, struct softgpu_cell *cell,
                        struct softgpu_atomics *atomics) {
    bool *lock = softgpu_cells_lock(&cells->cells[number]);
    softgpu_cells_take(lock);
    const struct softgpu_atomics *has = softgpu_cells_atomics(cells, number);
    *cell = cells->cells[number];
    *atomics = has ? *has : (struct softgpu_atomics){0};
    softgpu_cells_drop(lock);
    softgpu_cell_begin_launch(cell, atomics, 0);
}

uint32_t softgpu_race_writer(const struct softgpu_cells *cells, uint64_t begin, uint64_t va,
                             uint64_t *pc) {
    struct softgpu_conflict found = {0};
    struct softgpu_cell cell;
    struct softgpu_atomics atomics;
    copy_traces(cells, va / 4 - begin / 4, &cell, &atomics);
    if (atomics.past_last.bytes >> va % 4 & 1)
        note_conflict(&found, atomics.past_last, true);
    else if (cell.past_write.bytes >> va % 4 & 1)
        note_conflict(&found, cell.past_write, true);
    *pc = found.pc;
    return found.op;
}

struct softgpu_conflict softgpu_race_move(struct softgpu_cells *cells, uint64_t begin, uint64_t va,
                                          uint64_t bytes, bool writes,
                                          const struct softgpu_clock *clock) {
    struct softgpu_conflict found = {0};
    const struct way way = {.reads = !writes, .writes = writes, .kind = PLAIN};
    for (uint64_t at = va & ~UINT64_C(3); at < va + bytes && !found.found; at += 4) {
        struct softgpu_cell cell;
        struct softgpu_atomics atomics;
        copy_traces(cells, at / 4 - begin / 4, &cell, &atomics);
        unsigned from = at < va ? (unsigned)(va - at) : 0;
        unsigned to = va + bytes - at < 4 ? (unsigned)(va + bytes - at) : 4;
        /* The data of a copy or fill is unknown here, so `~cell.value` makes all bytes differ. */
        if (compare_past(&cell, &atomics, &way, (1u << to) - (1u << from), ~cell.value, clock,
                         &found))
            found.va = at + from;
    }
    return found;
}

/* ---- a wave's accesses ---- */

/* Returns true if a wave reads bytes again, without a barrier in between, and no wave has written
 * the dword in this launch. Such a read changes nothing. */
static bool is_read_again(const struct softgpu_cell *cell, const struct way *way, unsigned bytes,
                          uint32_t launch) {
    struct softgpu_stamp stamp = way->stamp;
    stamp.bytes = bytes & 15;
    return way->kind == PLAIN && !way->writes && cell->launch == launch && !cell->write.bytes &&
           !cell->has_atomics && softgpu_stamp_equals(cell->read[0], stamp, 48);
}

/* Records that a lane accesses `bytes` bytes from `at` on. `number` is the number of the first
 * dword's cell. */
static void enter_lane(struct wave *w, const struct inst *i, const struct way *way, int lane,
                       uint64_t at, unsigned bytes, struct softgpu_cells *cells, size_t number,
                       uint32_t launch, const struct softgpu_clock *clock,
                       struct softgpu_conflict *found) {
    uint8_t data[24] = {0};
    unsigned shift = at % 4, end = shift + bytes;
    if (way->writes && way->kind == PLAIN && lane >= 0)
        stored_bytes(w, i, lane, at, bytes, data + shift);
    for (unsigned done = 0; done < end; done += 4, number++) {
        struct softgpu_cell *cell = &cells->cells[number];
        unsigned from = done ? 0 : shift, to = end - done < 4 ? end - done : 4;
        unsigned mask = (1u << to) - (1u << from);
        if (is_read_again(cell, way, mask, launch))
            continue;
        struct softgpu_atomics *atomics = way->writes && way->kind != PLAIN
                                              ? softgpu_cells_make_atomics(cells, number)
                                              : softgpu_cells_atomics(cells, number);
        struct softgpu_stamp other;
        uint32_t value;
        memcpy(&value, data + done, 4);
        if (cell->launch != launch)
            softgpu_cell_begin_launch(cell, atomics, launch);
        if (clock && !found->found && compare_past(cell, atomics, way, mask, value, clock, found)) {
            found->lane = lane;
            found->va = at;
        }
        if (!enter(w->group->race, cell, atomics, way, mask, value, &other) || found->found)
            continue;
        *found = (struct softgpu_conflict){.found = true, .lane = lane, .va = at, .other = other};
    }
}

struct softgpu_conflict softgpu_race_global(struct wave *w, const struct inst *i,
                                            struct softgpu_cells *cells, uint64_t begin,
                                            const uint64_t *va, uint64_t mask, unsigned bytes,
                                            const struct softgpu_clock *clock) {
    struct softgpu_conflict found = {0};
    const struct way way = way_of(w, i);
    bool *held = NULL;
    for (uint64_t m = mask; m; m &= m - 1) {
        int l = __builtin_ctzll(m);
        size_t first = va[l] / 4 - begin / 4;
        bool *lock = softgpu_cells_lock(&cells->cells[first]);
        if (lock != held) {
            softgpu_cells_drop(held);
            softgpu_cells_take(held = lock);
        }
        enter_lane(w, i, &way, l, va[l], bytes, cells, first, w->group->race->launch, clock,
                   &found);
    }
    softgpu_cells_drop(held);
    return found;
}

struct softgpu_conflict softgpu_race_lds(struct wave *w, const struct inst *i,
                                         const uint32_t *offset, uint64_t mask, unsigned bytes) {
    struct softgpu_conflict found = {0};
    struct softgpu_race *race = w->group->race;
    if (!race || !race->lds.cells)
        return found;
    const struct way way = way_of(w, i);
    for (uint64_t m = mask; m; m &= m - 1) {
        int l = __builtin_ctzll(m);
        enter_lane(w, i, &way, l, offset[l], bytes, &race->lds, offset[l] / 4, 0, NULL, &found);
    }
    return found;
}
