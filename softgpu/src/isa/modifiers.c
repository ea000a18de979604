/* Applies SDWA, DPP, VOP3 and VOP3P modifiers to operands and results, and flushes denormals as
 * MODE requires. Instructions that have no modifiers and need no flushing do not use this file. */
#include "lanes.h"
#include "operand.h"

/* Returns the lane that DPP reads for lane l, or -1 if DPP reads no lane. */
static int dpp_lane(unsigned ctrl, int l) {
    int row = l & ~15, n = l & 15;
    if (ctrl <= 0xff) /* quad_perm */
        return (l & ~3) | (ctrl >> 2 * (l & 3) & 3);
    if (ctrl >= 0x101 && ctrl <= 0x10f) /* row_shl */
        return n + (int)(ctrl & 15) < 16 ? l + (int)(ctrl & 15) : -1;
    if (ctrl >= 0x111 && ctrl <= 0x11f) /* row_shr */
        return n >= (int)(ctrl & 15) ? l - (int)(ctrl & 15) : -1;
    if (ctrl >= 0x121 && ctrl <= 0x12f) /* row_ror */
        return row | ((n - (int)(ctrl & 15)) & 15);
    if (ctrl >= 0x150 && ctrl <= 0x15f) /* row_newbcast */
        return row | (ctrl & 15);
    switch (ctrl) {
    case 0x130: /* wave_shl */
        return l < 63 ? l + 1 : -1;
    case 0x134: /* wave_rol */
        return (l + 1) & 63;
    case 0x138: /* wave_shr */
        return l - 1;
    case 0x13c: /* wave_ror */
        return (l - 1) & 63;
    case 0x140: /* row_mirror */
        return row | (15 - n);
    case 0x141: /* row_half_mirror */
        return (l & ~7) | (7 - (l & 7));
    case 0x142: /* row_bcast:15 */
        return row - 1;
    case 0x143: /* row_bcast:31 */
        return l >= 32 ? 31 : -1;
    }
    return -1;
}

static void permute(struct wave *w, const struct inst *i, uint32_t *room, const uint32_t *from,
                    unsigned rows, uint64_t *mask) {
    uint64_t exec = wave_exec(w), keep = 0;
    for (int l = 0; l < LANES; l++) {
        int s = dpp_lane(i->dpp_ctrl, l);
        bool valid = s >= 0 && exec >> s & 1;
        bool enabled = i->row_mask >> (l >> 4) & 1 && i->bank_mask >> (l >> 2 & 3) & 1;
        for (unsigned r = 0; r < rows; r++)
            room[r * LANES + l] = valid ? from[r * LANES + s] : 0;
        keep |= (uint64_t)(enabled && (valid || i->bound_ctrl)) << l;
    }
    *mask &= keep;
}

static void select_part(uint32_t *room, unsigned sel, bool sign) {
    if (sel == SEL_DWORD)
        return;
    unsigned shift = sel <= SEL_BYTE3 ? 8 * sel : 16 * (sel - SEL_WORD0);
    unsigned bits = sel <= SEL_BYTE3 ? 8 : 16, up = 32 - bits;
    EACH_LANE(l) {
        uint32_t part = room[l] >> shift << up;
        room[l] = sign ? (uint32_t)((int32_t)part >> up) : part >> up;
    }
}

static void apply_sign(uint32_t *room, unsigned mods, uint32_t sign) {
    uint32_t keep = mods & ABS ? ~sign : UINT32_MAX, flip = mods & NEG ? sign : 0;
    EACH_LANE(l) room[l] = (room[l] & keep) ^ flip;
}

/* MODE has one pair of bits for f32, and one pair for f64 and f16. In each pair, the first bit
 * preserves denormal sources, and the second bit preserves denormal results. */
enum { DENORMAL_SOURCES = 1, DENORMAL_RESULTS = 2 };

static bool keeps(const struct wave *w, unsigned bits, unsigned denormals) {
    return w->mode >> (bits == 32 ? 4 : 6) & denormals;
}

/* Flushes denormals to zero, and preserves the sign. */
static void flush(uint32_t *room, enum type type) {
    EACH_LANE(l) {
        uint32_t u = room[l];
        if (type == F64) {
            if (!(room[LANES + l] & 0x7ff00000)) {
                room[l] = 0;
                room[LANES + l] &= 0x80000000;
            }
        } else if (type == F32 || type == PF32) {
            room[l] = u & 0x7f800000 ? u : u & 0x80000000;
        } else {
            uint32_t lo = u & 0x7c00 ? u & 0xffff : u & 0x8000;
            uint32_t hi = u & 0x7c000000 ? u & 0xffff0000 : u & 0x80000000;
            room[l] = type == F16 ? lo | (u & 0xffff0000) : lo | hi;
        }
    }
    if (type == PF32)
        flush(room + LANES, F32);
}

/* Selects, for each half of a VOP3P operation, the half of the source that the operation reads.
 * Negates the selected half if neg_lo or neg_hi is set. */
static void select_halves(const struct inst *i, unsigned n, enum type type, uint32_t *room) {
    bool lo_high = i->op_sel >> n & 1, hi_high = i->op_sel_hi >> n & 1;
    bool neg_lo = i->neg_lo >> n & 1, neg_hi = i->neg_hi >> n & 1;
    if (i->row->flags & MIX) { /* neg_hi requests the absolute value in MIX instructions */
        EACH_LANE(l) {
            uint32_t u = room[l];
            u = hi_high ? bits_of_f32(f16_of((uint16_t)(lo_high ? u >> 16 : u))) : u;
            room[l] = (neg_hi ? u & INT32_MAX : u) ^ (uint32_t)neg_lo << 31;
        }
    } else if (type == PB32) { /* op_sel selects a source word; op_sel_hi has no effect */
        EACH_LANE(l) {
            uint32_t u = room[lo_high ? LANES + l : l];
            room[l] = room[LANES + l] = u;
        }
    } else if (type == PF32) {
        EACH_LANE(l) {
            uint32_t lo = room[lo_high ? LANES + l : l], hi = room[hi_high ? LANES + l : l];
            room[l] = lo ^ (uint32_t)neg_lo << 31;
            room[LANES + l] = hi ^ (uint32_t)neg_hi << 31;
        }
    } else if (type == PI16 || type == PF16) {
        EACH_LANE(l) {
            uint32_t u = room[l], lo = lo_high ? u >> 16 : u & 0xffff;
            uint32_t hi = hi_high ? u >> 16 : u & 0xffff;
            room[l] = (lo | hi << 16) ^ (neg_lo ? 0x8000u : 0) ^ (neg_hi ? 0x80000000u : 0);
        }
    } else if (type == F32) {
        apply_sign(room, (neg_lo ? NEG : 0) | (neg_hi ? ABS : 0), 0x80000000);
    }
}

const uint32_t *softgpu_read_modified(struct wave *w, const struct inst *i, unsigned n,
                                      uint32_t *room, uint64_t *mask) {
    const struct operand *o = &i->src[n];
    unsigned rows = softgpu_type_dwords(o->type), bits = softgpu_type_float(o->type);
    const uint32_t *from = read_lanes(w, o, room);
    if (rows > ROOM / LANES)
        return from;
    if (i->dpp && n == 0) {
        permute(w, i, room, from, rows, mask);
    } else if (from != room) {
        memcpy(room, from, rows * LANES * sizeof *room);
    }
    if (i->encoding == E_VOP3P) {
        select_halves(i, n, o->type, room);
    } else {
        select_part(room, o->sel, o->mods & SEXT);
        if (i->row->flags & OPSEL && i->op_sel >> n & 1 && rows == 1 && o->type <= F16)
            EACH_LANE(l) room[l] >>= 16;
        if (o->mods & (NEG | ABS)) {
            uint32_t *top = rows == 2 ? room + LANES : room;
            apply_sign(top, o->mods, bits == 16 ? 0x8000 : 0x80000000);
        }
    }
    if (bits && i->row->flags & FP && !keeps(w, bits, DENORMAL_SOURCES))
        flush(room, o->type);
    return room;
}

static uint32_t scale_half(uint16_t h, float factor) {
    float x = f16_of(h);
    return x == 0 ? 0 : bits_of_f16(x * factor);
}

/* Multiplies a result by 2, 4 or 0.5. Denormal results are flushed first, and a zero result loses
 * its sign. */
static void scale(uint32_t *r, enum type type, unsigned omod) {
    static const float factors[] = {1, 2, 4, 0.5f};
    float factor = factors[omod];
    flush(r, type);
    EACH_LANE(l) {
        if (type == F64) {
            double x = f64_of(LOAD_B64(r));
            uint64_t scaled = x == 0 ? 0 : bits_of_f64(x * factor);
            r[l] = (uint32_t)scaled;
            r[LANES + l] = (uint32_t)(scaled >> 32);
        } else if (type == F32) {
            r[l] = f32_of(r[l]) == 0 ? 0 : bits_of_f32(f32_of(r[l]) * factor);
        } else {
            uint32_t high = type == PF16 ? scale_half((uint16_t)(r[l] >> 16), factor) : 0;
            r[l] = scale_half((uint16_t)r[l], factor) | high << 16;
        }
    }
}

/* The hardware ignores output modifiers if MODE preserves denormals or sets the IEEE bit. */
static bool scales(const struct wave *w, const struct inst *i, unsigned bits) {
    return bits && i->omod && !(w->mode & MODE_IEEE) && !keeps(w, bits, DENORMAL_RESULTS);
}

static uint16_t clamp_half(uint16_t h, bool nan_to_zero) {
    if ((h & 0x7fff) > 0x7c00)
        return nan_to_zero ? 0 : h;
    return h & 0x8000 ? 0 : h > 0x3c00 ? 0x3c00 : h;
}

static uint32_t clamp_single(uint32_t u, bool nan_to_zero) {
    if (is_nan32(u))
        return nan_to_zero ? 0 : u;
    return u >> 31 ? 0 : u > 0x3f800000 ? 0x3f800000 : u;
}

/* Limits a result to [0, 1]. */
static void clamp(uint32_t *r, enum type type, bool nan_to_zero) {
    EACH_LANE(l) {
        if (type == F64) {
            double x = f64_of(LOAD_B64(r));
            x = x != x ? (nan_to_zero ? 0 : x) : x > 1 ? 1 : x > 0 ? x : 0;
            r[l] = (uint32_t)bits_of_f64(x);
            r[LANES + l] = (uint32_t)(bits_of_f64(x) >> 32);
        } else if (type == F16) {
            r[l] = clamp_half((uint16_t)r[l], nan_to_zero);
        } else if (type == PF16) {
            r[l] = clamp_half((uint16_t)r[l], nan_to_zero) |
                   (uint32_t)clamp_half((uint16_t)(r[l] >> 16), nan_to_zero) << 16;
        } else {
            r[l] = clamp_single(r[l], nan_to_zero);
            if (type == PF32)
                r[LANES + l] = clamp_single(r[LANES + l], nan_to_zero);
        }
    }
}

/* Stores a result's low bits in the part of the register that SDWA selects. */
static void place_part(const struct inst *i, uint32_t *r, const uint32_t *old) {
    unsigned sel = i->dst_sel;
    if (sel == SEL_DWORD)
        return;
    unsigned shift = sel <= SEL_BYTE3 ? 8 * sel : 16 * (sel - SEL_WORD0);
    uint32_t part = sel <= SEL_BYTE3 ? 0xff : 0xffff, sign = part ^ part >> 1;
    EACH_LANE(l) {
        uint32_t u = (r[l] & part) << shift;
        if (i->dst_unused == 1 && r[l] & sign) /* UNUSED_SEXT: extends the sign */
            u |= ~(sign << shift | ((sign << shift) - 1));
        else if (i->dst_unused == 2) /* UNUSED_PRESERVE */
            u |= old[l] & ~(part << shift);
        r[l] = u;
    }
}

void softgpu_write_modified(struct wave *w, const struct inst *i, uint32_t *r, uint64_t mask) {
    enum type type = i->dst.type;
    unsigned bits = softgpu_type_float(type), rows = softgpu_type_dwords(type);
    uint32_t *old = w->v[i->dst.reg];
    if (scales(w, i, bits))
        scale(r, type, i->omod);
    if (bits && i->clamp)
        clamp(r, type, w->mode & MODE_DX10_CLAMP);
    if (bits && i->row->flags & FP && !keeps(w, bits, DENORMAL_RESULTS))
        flush(r, type);
    if (i->sdwa)
        place_part(i, r, old);
    bool high =
        i->row->flags & OPSEL ? i->op_sel >> 3 & 1 : i->row->flags & HALFKEEP && i->row->op == 0x22;
    if (i->row->flags & HALFKEEP || (i->row->flags & OPSEL && type >= B16 && type <= F16))
        EACH_LANE(l)
    r[l] = high ? r[l] << 16 | (old[l] & 0xffff) : (r[l] & 0xffff) | (old[l] & 0xffff0000);
    softgpu_blend(w, old, r, rows, mask);
}
