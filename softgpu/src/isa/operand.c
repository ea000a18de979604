/* Reads scalars as vectors, converts lane masks, and reads specially encoded sources. */
#include "operand.h"

#include "exec.h"
#include "lanes.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

uint64_t softgpu_special(const struct wave *w, unsigned enc) {
    const struct softgpu_context *context = w->group->dispatch->context;
    switch (enc) {
    case 235: /* src_shared_base */
        return context->shared_aperture;
    case 236: /* src_shared_limit */
        return context->shared_aperture + 0xffffffff;
    case 237: /* src_private_base */
        return context->private_aperture;
    case 238: /* src_private_limit */
        return context->private_aperture + 0xffffffff;
    case 251:
        return wave_vcc(w) == 0;
    case 252:
        return wave_exec(w) == 0;
    default:
        return w->scc;
    }
}

VECTORISED static void fill(uint32_t *room, uint32_t value) {
    EACH_LANE(l) room[l] = value;
}

const uint32_t *softgpu_broadcast(const struct wave *w, const struct operand *o, uint32_t *room) {
    unsigned dwords = softgpu_type_dwords(o->type);
    uint64_t value = 0;
    if (o->kind != O_SGPR)
        value = read_scalar(w, o);
    for (unsigned n = 0; n < dwords && n < ROOM / LANES; n++)
        fill(room + n * LANES,
             o->kind == O_SGPR ? w->s[o->reg + n] : (uint32_t)(n < 2 ? value >> 32 * n : 0));
    return room;
}

VECTORISED void softgpu_expand_mask(uint32_t *lanes, uint64_t mask) {
    uint32_t lo = (uint32_t)mask, hi = (uint32_t)(mask >> 32);
    for (int l = 0; l < 32; l++) {
        lanes[l] = -(lo >> l & 1);
        lanes[l + 32] = -(hi >> l & 1);
    }
}

uint64_t softgpu_gather_mask(const uint32_t *lanes) {
    uint64_t mask = 0;
#ifdef __SSE2__
    for (int l = 0; l < LANES; l += 4) {
        __m128i four = _mm_loadu_si128((const __m128i *)(lanes + l));
        mask |= (uint64_t)(unsigned)_mm_movemask_ps(_mm_castsi128_ps(four)) << l;
    }
#else
    for (int l = 0; l < LANES; l++)
        mask |= (uint64_t)(lanes[l] >> 31) << l;
#endif
    return mask;
}

VECTORISED static void blend_row(uint32_t *d, const uint32_t *from, const uint32_t *mask) {
    EACH_LANE(l) d[l] = (from[l] & mask[l]) | (d[l] & ~mask[l]);
}

void softgpu_blend(struct wave *w, uint32_t *d, const uint32_t *from, unsigned rows,
                   uint64_t mask) {
    if (mask == UINT64_MAX) {
        memcpy(d, from, rows * sizeof(uint32_t) * LANES);
        return;
    }
    const uint32_t *lanes = exec_lanes(w, mask);
    for (unsigned r = 0; r < rows; r++)
        blend_row(d + r * LANES, from + r * LANES, lanes);
}
