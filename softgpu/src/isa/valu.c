/* Runs vector arithmetic: fetches operands, calls the row's function, and stores the result. */
#include "exec.h"
#include "families.h"
#include "lanes.h"
#include "operand.h"

#include <fenv.h>

void softgpu_run_nop(struct wave *w, const struct inst *i) {
    (void)w;
    (void)i;
}

/* Returns the mask that contains the carry or the condition. */
static uint64_t read_carry(const struct wave *w, const struct inst *i) {
    const struct operand *o = i->row->src[2] == MASK ? &i->src[2] : &i->sdst;
    return o->kind == O_SGPR ? sgpr64(w, o->reg) : o->bits;
}

/* Runs instructions without modifiers in the usual MODE, with registers or constants as sources. */
void softgpu_run_vop(struct wave *w, const struct inst *i) {
    if (w->fp_special && i->row->flags & FP) {
        softgpu_run_vop_full(w, i);
        return;
    }
    uint32_t a[ROOM], b[ROOM], c[ROOM], result[ROOM];
    const struct row *row = i->row;
    uint64_t exec = wave_exec(w);
    struct lanes o = {.exec = exec, .w = w, .i = i};
    if (row->src[0])
        o.a = read_lanes(w, &i->src[0], a);
    if (row->src[1])
        o.b = read_lanes(w, &i->src[1], b);
    if (row->src[2] && row->src[2] != MASK)
        o.c = read_lanes(w, &i->src[2], c);
    if (row->flags & CARRY_IN)
        o.in = read_carry(w, i);
    bool direct = exec == UINT64_MAX;
    o.d = direct ? w->v[i->dst.reg] : result;
    row->fn.lanes(&o);
    if (!direct)
        softgpu_blend(w, w->v[i->dst.reg], result, softgpu_type_dwords(row->dst), exec);
    if (row->flags & CARRY_OUT)
        set_sgpr64(w, i->sdst.reg, o.out & exec);
}

/* Returns the CPU rounding mode that MODE requires for a type; nearest-even is the usual mode. */
static int rounding(const struct wave *w, enum type type) {
    static const int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    unsigned bits = softgpu_type_float(type);
    return bits ? modes[w->mode >> (bits == 32 ? 0 : 2) & 3] : FE_TONEAREST;
}

static const uint32_t *read_source(struct wave *w, const struct inst *i, unsigned n, uint32_t *room,
                                   uint64_t *mask) {
    enum type type = i->row->src[n];
    return type && type != MASK ? softgpu_read_modified(w, i, n, room, mask) : NULL;
}

/* Returns false and stops the wave if MODE.FP16_OVFL applies to an f16 result. In this mode the
 * hardware limits overflowed results to the largest f16 number, but preserves infinities from
 * infinite sources. */
static bool overflow_is_known(struct wave *w, const struct inst *i) {
    bool half = softgpu_type_float(i->dst.type) == 16 && i->row->flags & FP;
    if (half && w->mode & MODE_FP16_OVFL) {
        softgpu_wave_fault(w, i, -1, "MODE.FP16_OVFL is not emulated for results in f16");
        return false;
    }
    return true;
}

void softgpu_run_vop_full(struct wave *w, const struct inst *i) {
    uint32_t a[ROOM], b[ROOM], c[ROOM], result[ROOM];
    if (!overflow_is_known(w, i))
        return;
    const struct row *row = i->row;
    uint64_t mask = wave_exec(w);
    struct lanes o = {.w = w, .i = i, .d = result};
    o.a = read_source(w, i, 0, a, &mask);
    o.b = read_source(w, i, 1, b, &mask);
    o.c = read_source(w, i, 2, c, &mask);
    o.exec = mask;
    if (row->flags & CARRY_IN)
        o.in = read_carry(w, i);
    int mode = row->flags & FP && w->fp_special ? rounding(w, row->dst) : FE_TONEAREST;
    if (mode != FE_TONEAREST)
        fesetround(mode);
    row->fn.lanes(&o);
    softgpu_write_modified(w, i, result, mask);
    if (mode != FE_TONEAREST)
        fesetround(FE_TONEAREST);
    if (row->flags & CARRY_OUT)
        set_sgpr64(w, i->sdst.reg, o.out & mask);
}

/* Runs a compare, which stores one bit for each lane, and 0 for inactive lanes. */
void softgpu_run_vopc(struct wave *w, const struct inst *i) {
    uint32_t a[ROOM], b[ROOM];
    const struct row *row = i->row;
    uint64_t exec = wave_exec(w), mask = exec;
    struct lanes o = {.exec = exec, .w = w, .i = i};
    uint8_t mods = i->src[0].mods | i->src[1].mods;
    if (i->sdwa || i->dpp || mods || w->fp_special) {
        o.a = softgpu_read_modified(w, i, 0, a, &mask);
        o.b = softgpu_read_modified(w, i, 1, b, &mask);
    } else {
        o.a = read_lanes(w, &i->src[0], a);
        o.b = read_lanes(w, &i->src[1], b);
    }
    row->fn.lanes(&o);
    uint64_t result = o.out & mask;
    if (i->dpp) /* lanes that DPP disables preserve their bit */
        result |= sgpr64(w, i->dst.reg) & exec & ~mask;
    set_sgpr64(w, i->dst.reg, result);
    if (row->flags & CMPX)
        set_sgpr64(w, SGPR_EXEC, result);
}

void softgpu_run_readfirstlane(struct wave *w, const struct inst *i) {
    uint64_t exec = wave_exec(w);
    const struct operand *o = &i->src[0];
    unsigned lane = exec ? (unsigned)__builtin_ctzll(exec) : 0;
    w->s[i->dst.reg] = o->kind == O_VGPR ? w->v[o->reg][lane] : (uint32_t)read_scalar(w, o);
}

void softgpu_run_readlane(struct wave *w, const struct inst *i) {
    unsigned lane = read_scalar(w, &i->src[1]) & 63;
    const struct operand *o = &i->src[0];
    w->s[i->dst.reg] = o->kind == O_VGPR ? w->v[o->reg][lane] : (uint32_t)read_scalar(w, o);
}

void softgpu_run_writelane(struct wave *w, const struct inst *i) {
    unsigned lane = read_scalar(w, &i->src[1]) & 63;
    w->v[i->dst.reg][lane] = (uint32_t)read_scalar(w, &i->src[0]);
}

void softgpu_run_swap(struct wave *w, const struct inst *i) {
    uint32_t *a = w->v[i->dst.reg], *b = w->v[i->src[0].reg];
    const uint32_t *mask = exec_lanes(w, wave_exec(w));
    EACH_LANE(l) {
        uint32_t x = (a[l] ^ b[l]) & mask[l];
        a[l] ^= x;
        b[l] ^= x;
    }
}

void softgpu_run_accvgpr(struct wave *w, const struct inst *i) {
    uint32_t room[ROOM];
    softgpu_blend(w, w->v[i->dst.reg], read_lanes(w, &i->src[0], room), 1, wave_exec(w));
}
