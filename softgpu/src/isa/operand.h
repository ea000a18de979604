/* Reads and writes scalar operands, and vector operands without modifiers. The short functions of
 * this header are inline, because almost every instruction calls one of them. */
#ifndef SOFTGPU_OPERAND_H
#define SOFTGPU_OPERAND_H

#include "isa.h"

/* Returns the value of vccz, execz, scc or an aperture. */
uint64_t softgpu_special(const struct wave *w, unsigned enc);

static inline bool is_wide(const struct operand *o) {
    return (o->type >= B64 && o->type <= PB32) || o->type == MASK;
}

static inline uint64_t read_scalar(const struct wave *w, const struct operand *o) {
    if (o->kind == O_SGPR)
        return is_wide(o) ? sgpr64(w, o->reg) : w->s[o->reg];
    if (o->kind == O_SPECIAL)
        return softgpu_special(w, o->reg);
    return o->bits;
}

static inline void write_scalar(struct wave *w, const struct operand *o, uint64_t value) {
    if (is_wide(o))
        set_sgpr64(w, o->reg, value);
    else
        w->s[o->reg] = (uint32_t)value;
}

/* Copies a scalar operand to every lane of `room`, and returns `room`. */
const uint32_t *softgpu_broadcast(const struct wave *w, const struct operand *o, uint32_t *room);

static inline const uint32_t *read_lanes(const struct wave *w, const struct operand *o,
                                         uint32_t *room) {
    return o->kind == O_VGPR ? w->v[o->reg] : softgpu_broadcast(w, o, room);
}

/* Writes every lanes[n]: all ones if bit n of the mask is 1, otherwise 0. exec_lanes caches the
 * result for later instructions. */
void softgpu_expand_mask(uint32_t *lanes, uint64_t mask);

static inline const uint32_t *exec_lanes(struct wave *w, uint64_t exec) {
    if (w->expanded_exec != exec) {
        softgpu_expand_mask(w->lane_mask, exec);
        w->expanded_exec = exec;
    }
    return w->lane_mask;
}

/* Returns a mask whose bit n is bit 31 of lane n. */
uint64_t softgpu_gather_mask(const uint32_t *lanes);

/* Copies `rows` registers from `from` to `d`, but only in the lanes whose bit in `mask` is 1. */
void softgpu_blend(struct wave *w, uint32_t *d, const uint32_t *from, unsigned rows, uint64_t mask);

enum { ROOM = 4 * LANES }; /* size of a vector instruction's widest source, 128 bits */

/* Returns a source with all modifiers of SDWA, DPP and VOP3 applied (modifiers.c). Removes from
 * *mask the lanes whose result must not be stored. */
const uint32_t *softgpu_read_modified(struct wave *w, const struct inst *i, unsigned n,
                                      uint32_t *room, uint64_t *mask);
void softgpu_write_modified(struct wave *w, const struct inst *i, uint32_t *result, uint64_t mask);

#endif
