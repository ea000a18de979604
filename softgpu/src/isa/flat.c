/* Implements FLAT, GLOBAL and SCRATCH instructions. The upper half of a flat address determines
 * whether the address lies in workgroup memory, scratch or global memory. */
#include "../check/hooks.h"
#include "lanes.h"
#include "memory.h"
#include "operand.h"

/* Computes each lane's address: `base` plus a 64-bit register pair or, if `hi` is NULL, a 32-bit
 * register. */
VECTORISED static void add_offset(uint64_t *va, const uint32_t *lo, const uint32_t *hi,
                                  uint64_t base) {
    EACH_LANE(l) va[l] = base + (lo[l] | (uint64_t)(hi ? hi[l] : 0) << 32);
}

static void addresses(const struct wave *w, const struct inst *i, uint64_t *va) {
    const uint32_t *lo = w->v[i->src[0].reg];
    uint64_t offset = (uint64_t)(int64_t)i->imm;
    if (i->src[2].kind == O_SGPR)
        add_offset(va, lo, NULL, sgpr64(w, i->src[2].reg) + offset);
    else
        add_offset(va, lo, w->v[i->src[0].reg + 1], offset);
}

static uint64_t lanes_within(const uint64_t *va, uint64_t mask, uint64_t aperture) {
    uint64_t within = 0;
    for (uint64_t m = mask; m; m &= m - 1) {
        int l = __builtin_ctzll(m);
        within |= (uint64_t)(va[l] >> 32 == aperture >> 32) << l;
    }
    return within;
}

/* FLAT_SCRATCH contains the start of a wave's scratch. On older targets the kernel's code sets
 * FLAT_SCRATCH. On gfx942 the hardware sets FLAT_SCRATCH, and kernels do not see the register. */
static bool flat_scratch(struct wave *w, const struct inst *i, uint64_t *base) {
    if (w->code->target == GFX942) {
        *base = w->scratch_offset;
        return true;
    }
    *base = sgpr64(w, SGPR_FLAT_SCRATCH) - SCRATCH_VA;
    if (*base == w->scratch_offset)
        return true;
    softgpu_wave_fault(w, i, -1, "scratch memory is used and FLAT_SCRATCH (0x%llx) was not set up",
                       (unsigned long long)sgpr64(w, SGPR_FLAT_SCRATCH));
    return false;
}

static void run_flat_apertures(struct wave *w, const struct inst *i, const uint64_t *va,
                               uint64_t mask, uint64_t shared, uint64_t private) {
    struct access a;
    uint32_t offset[LANES];
    uint64_t base;
    EACH_LANE(l) offset[l] = (uint32_t)va[l];
    unsigned bytes = softgpu_move_bytes(move_of(i->row));
    if (shared && softgpu_locate_lds(w, i, offset, shared, bytes, &a))
        softgpu_transfer(w, i, &a);
    if (private && w->stop != FAULTED && flat_scratch(w, i, &base))
        softgpu_transfer_scratch(w, i, base, offset, private);
    mask &= ~(shared | private);
    if (mask && w->stop != FAULTED && softgpu_locate_global(w, i, va, mask, &a))
        softgpu_transfer(w, i, &a);
}

static uint32_t loaded_dword(const char *from, enum move move) {
    uint32_t dword = 0;
    memcpy(&dword, from, softgpu_move_bytes(move));
    if (move == MV_LDS_I8)
        return (uint32_t)(int8_t)dword;
    return move == MV_LDS_I16 ? (uint32_t)(int16_t)dword : dword;
}

/* Implements global_load_lds_*: stores lane n's value to workgroup memory, at M0 plus the offset
 * plus 4 * n.
 */
void softgpu_run_load_lds(struct wave *w, const struct inst *i) {
    uint64_t va[LANES], mask = wave_exec(w);
    uint32_t size = w->group->dispatch->lds_size, first = w->s[SGPR_M0] + (uint32_t)i->imm;
    struct access a;
    addresses(w, i, va);
    if (!softgpu_locate_global(w, i, va, mask, &a))
        return;
    for (uint64_t m = a.mask; m; m &= m - 1) {
        int l = __builtin_ctzll(m);
        uint32_t to = first + 4 * (uint32_t)l, value = loaded_dword(a.at[l], move_of(i->row));
        if (to > size || size - to < 4) {
            CHECK_SKIPS_LANE(a.mask, w, i, l, "workgroup memory", to, 4)
            softgpu_offset_fault(w, i, l, "access outside workgroup memory", to, 4);
            return;
        }
        memcpy(w->group->lds + to, &value, 4);
        CHECK_TO_LDS(w, i, l, to);
    }
}

/* Runs instructions of the encodings E_FLAT and E_GLOBAL. */
void softgpu_run_flat(struct wave *w, const struct inst *i) {
    uint64_t va[LANES], mask = wave_exec(w);
    struct access a;
    addresses(w, i, va);
    if (i->encoding == E_FLAT) {
        const struct softgpu_context *context = w->group->dispatch->context;
        uint64_t shared = lanes_within(va, mask, context->shared_aperture);
        uint64_t private = lanes_within(va, mask, context->private_aperture);
        if (shared | private) {
            run_flat_apertures(w, i, va, mask, shared, private);
            return;
        }
    }
    if (softgpu_locate_global(w, i, va, mask, &a))
        softgpu_transfer(w, i, &a);
}

void softgpu_run_scratch(struct wave *w, const struct inst *i) {
    uint32_t offset[LANES];
    uint64_t base;
    uint32_t scalar = (i->src[2].kind == O_SGPR ? w->s[i->src[2].reg] : 0) + (uint32_t)i->imm;
    const uint32_t *lanes = w->v[i->src[0].reg];
    bool none = i->src[0].kind == O_NONE;
    EACH_LANE(l) offset[l] = (none ? 0 : lanes[l]) + scalar;
    if (flat_scratch(w, i, &base))
        softgpu_transfer_scratch(w, i, base, offset, wave_exec(w));
}

#define ROW(op_, name_, targets_, dst_, data_, move_)                                              \
    INFO_ROW(op_, name_, targets_, dst_, B64, data_, NONE, move_)

static const struct row flat[] = {
#include "flat.def"
};
static const struct row global[] = {
#include "global.def"
};
static const struct row scratch[] = {
#include "scratch.def"
};

const struct rows softgpu_rows_flat = FAMILY(flat);
const struct rows softgpu_rows_global = FAMILY(global);
const struct rows softgpu_rows_scratch = FAMILY(scratch);
