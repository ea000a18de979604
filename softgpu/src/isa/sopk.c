/* Implements SOPK: instructions with one register and a 16-bit constant, including access to MODE
 * and other hardware registers. */
#include "exec.h"
#include "scalar.h"

S_OP(movk_i32, uint32_t, b)
S_OP(cmovk_i32, uint32_t, w->scc ? b : a)
S_SCC(addk_i32, uint32_t, a + b, (~(a ^ b) & (a ^ r)) >> 31)
S_OP(mulk_i32, uint32_t, (uint32_t)(a * b))

/* The unsigned compares extend the constant with zeros. */
#define COMPARE(name, T, K, op)                                                                    \
    static uint64_t name(struct wave *w, uint64_t a, uint64_t b) {                                 \
        w->scc = (T)a op(T)(K) b;                                                                  \
        return 0;                                                                                  \
    }

COMPARE(cmpk_eq_i32, int32_t, int16_t, ==)
COMPARE(cmpk_lg_i32, int32_t, int16_t, !=)
COMPARE(cmpk_gt_i32, int32_t, int16_t, >)
COMPARE(cmpk_ge_i32, int32_t, int16_t, >=)
COMPARE(cmpk_lt_i32, int32_t, int16_t, <)
COMPARE(cmpk_le_i32, int32_t, int16_t, <=)
COMPARE(cmpk_eq_u32, uint32_t, uint16_t, ==)
COMPARE(cmpk_lg_u32, uint32_t, uint16_t, !=)
COMPARE(cmpk_gt_u32, uint32_t, uint16_t, >)
COMPARE(cmpk_ge_u32, uint32_t, uint16_t, >=)
COMPARE(cmpk_lt_u32, uint32_t, uint16_t, <)
COMPARE(cmpk_le_u32, uint32_t, uint16_t, <=)

enum hwreg {
    HW_MODE = 1,
    HW_STATUS = 2,
    HW_TRAPSTS = 3,
    HW_ID = 4,
    HW_GPR_ALLOC = 5,
    HW_LDS_ALLOC = 6,
    HW_IB_STS = 7,
    HW_SH_MEM_BASES = 15,
    HW_XCC_ID = 20, /* gfx942 only */
};

/* A field of a hardware register, which the constant encodes as the register's number, first bit
 * and width. */
struct field {
    unsigned reg, shift;
    uint32_t mask;
};

static struct field field_of(uint64_t constant) {
    unsigned width = (constant >> 11 & 31) + 1;
    return (struct field){.reg = constant & 63,
                          .shift = constant >> 6 & 31,
                          .mask = width == 32 ? UINT32_MAX : (1u << width) - 1};
}

static uint64_t getreg_b32(struct wave *w, uint64_t a, uint64_t constant) {
    (void)a;
    struct field f = field_of(constant);
    const struct dispatch *d = w->group->dispatch;
    uint32_t value = 0;
    switch (f.reg) {
    case HW_MODE:
        value = w->mode;
        break;
    case HW_STATUS:
        value = (uint32_t)w->scc | (uint32_t)(wave_exec(w) == 0) << 9 |
                (uint32_t)(wave_vcc(w) == 0) << 10 | 1u << 16;
        break;
    case HW_TRAPSTS:
        value = w->trapsts;
        break;
    case HW_ID: /* only one compute unit exists, so only the wave's number varies */
        value = w->index;
        break;
    case HW_LDS_ALLOC:
        value = (d->lds_size + 511) / 512 << 12;
        break;
    case HW_IB_STS:
        break;
    case HW_SH_MEM_BASES:
        value = (uint32_t)(d->context->private_aperture >> 48) |
                (uint32_t)(d->context->shared_aperture >> 48) << 16;
        break;
    case HW_XCC_ID: /* 0: the device has only one XCC */
        if (d->target == GFX942)
            break;
        /* fallthrough */
    default:
        softgpu_wave_fault(w, w->next - 1, -1, "hardware register %u is not emulated", f.reg);
    }
    return value >> f.shift & f.mask;
}

static uint64_t setreg_b32(struct wave *w, uint64_t a, uint64_t constant) {
    struct field f = field_of(constant);
    uint32_t bits = f.mask << f.shift, value = (uint32_t)a << f.shift & bits;
    switch (f.reg) {
    case HW_MODE:
        w->mode = (w->mode & ~bits) | value;
        w->fp_special = mode_is_special(w->mode);
        if (w->mode & MODE_GPR_IDX) /* a separate loop runs waves with MODE_GPR_IDX */
            w->stop = YIELDED;
        break;
    case HW_TRAPSTS:
        w->trapsts = (w->trapsts & ~bits) | value;
        break;
    default:
        softgpu_wave_fault(w, w->next - 1, -1, "hardware register %u cannot be written", f.reg);
    }
    return 0;
}

static uint64_t call_b64(struct wave *w, uint64_t a, uint64_t constant) {
    (void)a;
    uint64_t next = w->code->va + w->next->offset;
    softgpu_wave_jump(w, w->next - 1, next + (uint64_t)(4 * (int64_t)(int16_t)constant));
    return next;
}

/* The row's function gets the register, or the literal of s_setreg_imm32, as its first argument. */
void softgpu_run_sopk(struct wave *w, const struct inst *i) {
    if (!i->row->fn.scalar) {
        softgpu_run_unknown(w, i);
        return;
    }
    uint64_t a = i->row->src[1] ? i->src[1].bits : read_scalar(w, &i->dst);
    uint64_t r = i->row->fn.scalar(w, a, (uint64_t)(int64_t)i->imm);
    if (i->row->dst)
        write_scalar(w, &i->dst, r);
}

static const struct row rows[] = {
#define ROW SROW
#include "sopk.def"
#undef ROW
};

const struct rows softgpu_rows_sopk = FAMILY(rows);
