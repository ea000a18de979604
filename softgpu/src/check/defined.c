#include "defined.h"
#include "../isa/operand.h"
#include "hooks.h"

#include <pthread.h>
#include <stdlib.h>

static bool enabled;

static void read_environment(void) {
    const char *wanted = secure_getenv("MGPU_RT_CHECK_UNINITIALISED");
    enabled = !wanted || strcmp(wanted, "off") != 0;
}

bool softgpu_defined_enabled(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_environment);
    return enabled;
}

/* ---- the first state ---- */

static uint8_t *renew(uint8_t *bits, size_t *have, size_t size) {
    if (*have < size) {
        free(bits);
        bits = malloc(size);
        *have = bits ? size : 0;
    }
    if (bits)
        memset(bits, 0, size);
    return bits;
}

/* Workgroup memory and scratch begin undefined. If shadow bits cannot be allocated, the checker
 * does not track the group's undefined bits. */
void softgpu_defined_group_begin(struct group *g) {
    if (!softgpu_defined_enabled())
        return;
    if (!g->bits)
        g->bits = calloc(1, sizeof *g->bits);
    if (!g->bits)
        return;
    struct softgpu_group_bits *bits = g->bits;
    const struct dispatch *d = g->dispatch;
    bits->lds = renew(bits->lds, &bits->lds_size, d->lds_size);
    bits->scratch = renew(bits->scratch, &bits->scratch_size,
                          (size_t)d->scratch_lane_size * LANES * g->wave_count);
}

void softgpu_defined_group_free(struct group *g) {
    if (!g->bits)
        return;
    free(g->bits->lds);
    free(g->bits->scratch);
    free(g->bits);
}

void softgpu_defined_wave_free(struct wave *w) {
    free(w->defined);
}

static bool has_bits(const struct group *g) {
    const struct dispatch *d = g->dispatch;
    return g->bits && (!d->lds_size || g->bits->lds) && (!d->scratch_lane_size || g->bits->scratch);
}

/* Returns how many scalar registers the hardware initialises: the user data, the workgroup's ids
 * and size, and the scratch offset. */
static unsigned set_scalars(const struct dispatch *d) {
    unsigned bits = d->rsrc2;
    return (bits >> 1 & 31) + (unsigned)__builtin_popcount(bits >> 7 & 15) + (bits & 1);
}

void softgpu_defined_wave_begin(struct wave *w) {
    const struct group *g = w->group;
    if (!has_bits(g)) {
        free(w->defined);
        w->defined = NULL;
        return;
    }
    if (!w->defined)
        w->defined = malloc(sizeof *w->defined);
    struct softgpu_defined *d = w->defined;
    if (!d)
        return;
    unsigned rows = softgpu_vgprs(g->dispatch);
    rows = rows < AGPR0 ? rows : AGPR0;
    memset(d, 0, offsetof(struct softgpu_defined, v));
    for (unsigned half = 0; half <= AGPR0; half += AGPR0) {
        memset(d->v[half], 0xff, rows * sizeof d->v[0]);
        for (unsigned r = 0; r < rows; r++)
            d->holes[half + r] = wave_exec(w); /* lanes that never run count as defined */
    }
    unsigned ids = g->dispatch->target & SINCE90A ? 1 : 1 + (g->dispatch->rsrc2 >> 11 & 3);
    memset(d->holes, 0, ids * sizeof d->holes[0]);
    memset(d->s, 0, sizeof d->s);
    for (unsigned r = set_scalars(g->dispatch); r < SGPR_FLAT_SCRATCH; r++)
        d->s[r] = UINT32_MAX;
    d->scc = false;
    memset(d->v_origin, 0, sizeof d->v_origin);
    memset(d->s_origin, 0, sizeof d->s_origin);
}

/* ---- uses ---- */

void softgpu_use_lanes(struct wave *w, const struct inst *i, unsigned reg, unsigned count,
                       uint64_t mask, const char *use) {
    struct softgpu_defined *d = w->defined;
    for (unsigned r = reg; r < reg + count; r++) {
        uint64_t holes = d->holes[r] & mask;
        if (!holes)
            continue;
        softgpu_report_use(w, i, __builtin_ctzll(holes), use, &d->v_origin[r]);
        d->holes[r] &= ~mask;
    }
}

void softgpu_use_scalars(struct wave *w, const struct inst *i, unsigned reg, unsigned count,
                         const char *use) {
    struct softgpu_defined *d = w->defined;
    for (unsigned r = reg; r < reg + count; r++) {
        if (!d->s[r])
            continue;
        softgpu_report_use(w, i, -1, use, &d->s_origin[r]);
        d->s[r] = 0;
    }
}

/* Reports an undefined bit of EXEC as a use in a branch, because EXEC selects the lanes that run.
 * For example, MLIR's scf.if sets EXEC. */
static void use_exec(struct wave *w, const struct inst *i) {
    struct softgpu_defined *d = w->defined;
    uint64_t holes = d->s[SGPR_EXEC] | (uint64_t)d->s[SGPR_EXEC + 1] << 32;
    if (!holes)
        return;
    int lane = __builtin_ctzll(holes);
    softgpu_report_use(w, i, lane, "branch", &d->s_origin[SGPR_EXEC + lane / 32]);
    d->s[SGPR_EXEC] = d->s[SGPR_EXEC + 1] = 0;
}

static void run_branch(struct wave *w, const struct inst *i) {
    enum { SCC0 = 4, SCC1, VCCZ, VCCNZ };
    struct softgpu_defined *d = w->defined;
    unsigned op = i->row->op;
    if ((op == SCC0 || op == SCC1) && d->scc) {
        softgpu_report_use(w, i, -1, "branch", &d->scc_origin);
        d->scc = false;
    }
    /* if a defined bit is 1, undefined bits do not affect the branch */
    uint64_t holes = d->s[SGPR_VCC] | (uint64_t)d->s[SGPR_VCC + 1] << 32;
    if ((op == VCCZ || op == VCCNZ) && holes && !(wave_vcc(w) & ~holes))
        softgpu_use_scalars(w, i, SGPR_VCC, 2, "branch");
    i->run(w, i);
}

/* ---- what an instruction touches ---- */

enum { MOST_ROWS = 160 };

/* The vector registers that an instruction names, without repetition. */
struct named {
    unsigned count;
    uint16_t row[MOST_ROWS];
};

static void add_rows(struct named *rows, uint64_t *seen, const struct operand *o) {
    unsigned count = o->kind == O_VGPR ? softgpu_type_dwords(o->type) : 0;
    for (unsigned r = o->reg; r < o->reg + count && r < VGPR_ROWS; r++) {
        if (seen[r / 64] >> r % 64 & 1)
            continue;
        seen[r / 64] |= UINT64_C(1) << r % 64;
        rows->row[rows->count++] = (uint16_t)r;
    }
}

static uint64_t holes_of(const struct softgpu_defined *d, const struct operand *o,
                         const struct softgpu_origin **origin) {
    unsigned count = o->kind == O_VGPR ? softgpu_type_dwords(o->type) : 0;
    uint64_t holes = 0;
    for (unsigned r = o->reg; r < o->reg + count; r++) {
        holes |= d->holes[r];
        if (d->holes[r])
            *origin = &d->v_origin[r];
    }
    return holes;
}

static bool scalar_holes(const struct softgpu_defined *d, const struct operand *o,
                         const struct softgpu_origin **origin) {
    enum { SCC = 253 };
    unsigned count = o->kind == O_SGPR ? softgpu_type_dwords(o->type) : 0;
    for (unsigned r = o->reg; r < o->reg + count && r < SGPRS; r++)
        if (d->s[r]) {
            *origin = &d->s_origin[r];
            return true;
        }
    if (o->kind == O_SPECIAL && o->reg == SCC && d->scc) {
        *origin = &d->scc_origin;
        return true;
    }
    return false;
}

/* ---- runs with other values ---- */

/* The members of struct wave that an instruction can change, other than registers. */
#define EACH_STATE(X) X(mode) X(trapsts) X(next) X(code) X(stop) X(scc) X(fp_special)

struct scalars {
    uint32_t s[SGPRS];
#define DECLARE(member) __typeof__(((struct wave *)0)->member) member;
    EACH_STATE(DECLARE)
#undef DECLARE
};

static void save(const struct wave *w, struct scalars *to) {
    memcpy(to->s, w->s, sizeof to->s);
#define SAVE(member) to->member = w->member;
    EACH_STATE(SAVE)
#undef SAVE
}

static void restore(struct wave *w, const struct scalars *from) {
    memcpy(w->s, from->s, sizeof w->s);
#define RESTORE(member) w->member = from->member;
    EACH_STATE(RESTORE)
#undef RESTORE
}

/* Six values replace undefined bits: all zeros, all ones, a large positive float, a large negative
 * float, and two pseudo-random values. In two further runs of a comparison, undefined bits get the
 * value of the opposite operand. */
enum { PATTERNS = 6, AS_SECOND = PATTERNS, AS_FIRST, RUNS };

/* Returns a substitute value for undefined bits. In a lane, equal dwords with equal undefined bits
 * get equal values, unless all bits are undefined. A compare-and-swap loop on one byte also
 * compares the neighbouring bytes, which must match. */
static uint32_t pattern(unsigned run, unsigned reg, unsigned lane, uint32_t value,
                        uint32_t undefined) {
    static const uint32_t constants[] = {0, UINT32_MAX, 0x7b7b7b7b, 0xfbfbfbfb};
    if (run < 4)
        return constants[run];
    uint64_t seed = undefined == UINT32_MAX ? reg + 1 : value ^ (uint64_t)undefined << 32;
    seed = (seed * LANES + lane) * 0x9e3779b97f4a7c15;
    uint32_t chance = (uint32_t)((seed ^ seed >> 29) * 0xbf58476d1ce4e5b9 >> 32);
    return run == 4 ? chance : ~chance;
}

static uint32_t replaced(uint32_t value, uint32_t undefined, uint32_t by) {
    return (value & ~undefined) | (by & undefined);
}

static bool is_comparison(const struct inst *i) {
    return i->encoding == E_VOPC || i->encoding == E_SOPC ||
           (i->encoding == E_SOPK && !i->row->dst);
}

/* Returns dword n of a comparison's operand, which is a register or a constant. */
static uint32_t other_side(const struct wave *w, const struct operand *o, unsigned n,
                           unsigned lane) {
    if (o->kind == O_VGPR)
        return w->v[o->reg + n][lane];
    if (o->kind == O_SGPR)
        return w->s[o->reg + n];
    return (uint32_t)(o->bits >> 32 * (n & 1));
}

static void fill_side(struct wave *w, const struct operand *side, const struct operand *other) {
    struct softgpu_defined *d = w->defined;
    unsigned count = softgpu_type_dwords(side->type);
    for (unsigned n = 0; n < count; n++) {
        if (side->kind == O_VGPR)
            for (uint64_t m = d->holes[side->reg + n]; m; m &= m - 1) {
                unsigned l = (unsigned)__builtin_ctzll(m);
                uint32_t *value = &w->v[side->reg + n][l];
                *value = replaced(*value, d->v[side->reg + n][l], other_side(w, other, n, l));
            }
        else if (side->kind == O_SGPR)
            w->s[side->reg + n] =
                replaced(w->s[side->reg + n], d->s[side->reg + n], other_side(w, other, n, 0));
    }
}

static void fill_comparison(struct wave *w, const struct inst *i, unsigned run) {
    if (i->encoding == E_SOPK) {
        struct operand constant = {.kind = O_CONST, .bits = (uint64_t)(int64_t)i->imm};
        fill_side(w, &i->dst, &constant);
    } else if (run == AS_SECOND) {
        fill_side(w, &i->src[0], &i->src[1]);
    } else {
        fill_side(w, &i->src[1], &i->src[0]);
    }
}

static void fill(struct wave *w, const struct inst *i, const struct named *rows, unsigned run) {
    struct softgpu_defined *d = w->defined;
    if (d->scc)
        w->scc = run & 1;
    if (run >= PATTERNS) {
        fill_comparison(w, i, run);
        return;
    }
    for (unsigned r = 0; r < SGPRS; r++)
        if (d->s[r])
            w->s[r] = replaced(w->s[r], d->s[r], pattern(run, VGPR_ROWS + r, 0, w->s[r], d->s[r]));
    for (unsigned n = 0; n < rows->count; n++) {
        unsigned r = rows->row[n];
        for (uint64_t m = d->holes[r]; m; m &= m - 1) {
            unsigned l = (unsigned)__builtin_ctzll(m);
            uint32_t value = w->v[r][l], undefined = d->v[r][l];
            w->v[r][l] = replaced(value, undefined, pattern(run, r, l, value, undefined));
        }
    }
}

/* The findings of all runs of an instruction. */
struct outcome {
    uint32_t v[MOST_ROWS][LANES], s[SGPRS];
    bool scc;
};

static bool is_part(const struct operand *o, enum operand_kind kind, unsigned reg) {
    return o->kind == kind && reg - o->reg < softgpu_type_dwords(o->type);
}

/* Records the findings. A destination that gets undefined bits inherits the origin of an undefined
 * source. */
static void enter(struct wave *w, const struct inst *i, const struct named *rows,
                  const struct outcome *out, const struct softgpu_origin *origin) {
    struct softgpu_defined *d = w->defined;
    const struct softgpu_origin from = origin ? *origin : (struct softgpu_origin){0};
    for (unsigned n = 0; n < rows->count; n++) {
        unsigned r = rows->row[n];
        uint64_t holes = 0;
        for (unsigned l = 0; l < LANES; l++)
            holes |= (uint64_t)(out->v[n][l] != 0) << l;
        if (holes & ~d->holes[r] || (from.inst && is_part(&i->dst, O_VGPR, r)))
            d->v_origin[r] = from;
        d->holes[r] = holes;
        memcpy(d->v[r], out->v[n], sizeof d->v[r]);
    }
    for (unsigned r = 0; r < SGPRS; r++) {
        if (out->s[r] & ~d->s[r] || (from.inst && is_part(&i->dst, O_SGPR, r)))
            d->s_origin[r] = from;
        d->s[r] = out->s[r];
    }
    if (out->scc && !d->scc)
        d->scc_origin = from;
    d->scc = out->scc;
}

/* Runs an instruction unchanged, and then with substitute values in the undefined bits that the
 * instruction may read. Bits that the instruction does not write stay undefined. */
static void experiment(struct wave *w, const struct inst *i, const struct softgpu_origin *origin) {
    static _Thread_local uint32_t before[MOST_ROWS][LANES], after[MOST_ROWS][LANES];
    static _Thread_local struct outcome out;
    struct scalars first, last;
    struct named rows = {0};
    uint64_t seen[VGPR_ROWS / 64 + 1] = {0};
    const struct operand *const operands[] = {&i->dst, &i->src[0], &i->src[1], &i->src[2]};
    for (unsigned n = 0; n < 4; n++)
        add_rows(&rows, seen, operands[n]);
    save(w, &first);
    for (unsigned n = 0; n < rows.count; n++)
        memcpy(before[n], w->v[rows.row[n]], sizeof before[n]);
    i->run(w, i);
    if (w->stop == FAULTED)
        return;
    save(w, &last);
    for (unsigned n = 0; n < rows.count; n++)
        memcpy(after[n], w->v[rows.row[n]], sizeof after[n]);
    memset(out.v, 0, rows.count * sizeof out.v[0]);
    memset(out.s, 0, sizeof out.s);
    out.scc = false;
    unsigned runs = is_comparison(i) ? RUNS : PATTERNS;
    for (unsigned run = 0; run < runs; run++) {
        restore(w, &first);
        for (unsigned n = 0; n < rows.count; n++)
            memcpy(w->v[rows.row[n]], before[n], sizeof before[n]);
        fill(w, i, &rows, run);
        i->run(w, i);
        for (unsigned n = 0; n < rows.count; n++)
            for (unsigned l = 0; l < LANES; l++)
                out.v[n][l] |= w->v[rows.row[n]][l] ^ after[n][l];
        for (unsigned r = 0; r < SGPRS; r++)
            out.s[r] |= w->s[r] ^ last.s[r];
        out.scc |= w->scc != last.scc;
    }
    restore(w, &last);
    for (unsigned n = 0; n < rows.count; n++)
        memcpy(w->v[rows.row[n]], after[n], sizeof after[n]);
    enter(w, i, &rows, &out, origin);
}

/* ---- families ---- */

/* Returns true if each lane reads only its own sources and writes its whole destination. */
static bool is_lanewise(const struct inst *i) {
    return !i->dpp && !i->sdwa && i->row->fn.lanes && i->encoding != E_MAI && i->encoding != E_DS &&
           !(i->row->flags & (OPSEL | HALFKEEP));
}

static void define_scalars(struct softgpu_defined *d, const struct operand *o) {
    unsigned count = o->kind == O_SGPR ? softgpu_type_dwords(o->type) : 0;
    for (unsigned r = o->reg; r < o->reg + count && r < SGPRS; r++)
        d->s[r] = 0;
}

static void run_vector(struct wave *w, const struct inst *i) {
    struct softgpu_defined *d = w->defined;
    bool lanewise = is_lanewise(i);
    uint64_t exec = wave_exec(w), lanes = lanewise ? exec : UINT64_MAX, holes = 0;
    const struct softgpu_origin *origin = NULL;
    bool scalar = false;
    if (!lanewise) {
        holes = holes_of(d, &i->dst, &origin);
        scalar = scalar_holes(d, &i->dst, &origin) || scalar_holes(d, &i->sdst, &origin);
    } else if (i->row->flags & CARRY_IN) {
        scalar = scalar_holes(d, &i->sdst, &origin);
    }
    for (unsigned n = 0; n < 3; n++) {
        holes |= holes_of(d, &i->src[n], &origin);
        scalar |= scalar_holes(d, &i->src[n], &origin);
    }
    if (scalar || holes & lanes) {
        experiment(w, i, origin);
        use_exec(w, i);
        return;
    }
    i->run(w, i);
    if (!lanewise)
        return;
    unsigned rows = i->dst.kind == O_VGPR ? softgpu_type_dwords(i->dst.type) : 0;
    for (unsigned r = i->dst.reg; r < i->dst.reg + rows; r++)
        d->holes[r] &= ~exec;
    define_scalars(d, &i->dst);
    if (i->row->flags & CARRY_OUT)
        define_scalars(d, &i->sdst);
}

/* Returns true for s_setpc, s_swappc and s_call. The checker runs a jump only once, with unchanged
 * bits. */
static bool is_jump(const struct inst *i) {
    return (i->encoding == E_SOP1 && (i->row->op == 0x1d || i->row->op == 0x1e)) ||
           (i->encoding == E_SOPK && i->row->op == 0x15);
}

static bool is_relative(const struct inst *i) {
    return i->encoding == E_SOP1 && i->row->op >= 0x2a && i->row->op <= 0x2d;
}

static void run_scalar(struct wave *w, const struct inst *i) {
    struct softgpu_defined *d = w->defined;
    const struct softgpu_origin *origin = NULL;
    if (is_jump(i)) {
        if (i->src[0].kind == O_SGPR)
            softgpu_use_scalars(w, i, i->src[0].reg, 2, "branch");
        i->run(w, i);
        define_scalars(d, &i->dst);
        return;
    }
    if (d->scc)
        origin = &d->scc_origin;
    bool holes = d->scc || is_relative(i) || scalar_holes(d, &i->dst, &origin);
    for (unsigned n = 0; n < 2; n++)
        holes |= scalar_holes(d, &i->src[n], &origin);
    if (!holes) {
        i->run(w, i);
        return;
    }
    experiment(w, i, origin);
    use_exec(w, i);
}

static bool exchanges_lanes(const struct inst *i) {
    enum move move = move_of(i->row);
    return i->encoding == E_DS && (move == DS_SWIZZLE || move == DS_PERMUTE || move == DS_BPERMUTE);
}

void softgpu_check_run(struct wave *w, const struct inst *i) {
    struct softgpu_defined *d = w->defined;
    if (!d || !i->row) {
        i->run(w, i);
        return;
    }
    if (w->mode & MODE_GPR_IDX && d->s[SGPR_M0])
        softgpu_use_scalars(w, i, SGPR_M0, 1, "address");
    if ((i->encoding >= E_VOP1 && i->encoding <= E_MAI) || exchanges_lanes(i))
        run_vector(w, i);
    else if (i->encoding < E_SOPP)
        run_scalar(w, i);
    else if (i->encoding == E_SOPP)
        run_branch(w, i);
    else
        softgpu_defined_memory(w, i);
}
