/* Bits of registers and memory that were never written are undefined. A wave that uses such a bit
 * is reported: in a branch, as an address, or in a store that the host sees. A load or a move is no
 * use.
 *
 * An instruction that reads undefined bits is run several times, each time with other values in
 * their place. The bits of an instruction's result that change are undefined. So no instruction
 * needs a rule, and a bit that does not matter is never reported. A result that is equal each time
 * by chance is taken for defined.
 *
 * Only the thread that runs the wave uses it, except for the bits of allocations (shadow.h). */
#ifndef SOFTGPU_CHECK_DEFINED_H
#define SOFTGPU_CHECK_DEFINED_H

#include "../isa/memory.h"
#include "shadow.h"

enum softgpu_memory { SOFTGPU_REGISTER, SOFTGPU_GLOBAL, SOFTGPU_WORKGROUP, SOFTGPU_SCRATCH };

/* The load that brought undefined bits into a register; a register that was never written has
 * none. */
struct softgpu_origin {
    const struct inst *inst;
    uint64_t pc, va;
    enum softgpu_memory memory;
};

/* The undefined bits of one wave. */
struct softgpu_defined {
    uint64_t holes[VGPR_ROWS];    /* lanes that have an undefined bit */
    uint32_t v[VGPR_ROWS][LANES]; /* the undefined bits of those lanes */
    uint32_t s[SGPRS];            /* undefined bits */
    bool scc;                     /* is undefined */
    struct softgpu_origin v_origin[VGPR_ROWS], s_origin[SGPRS], scc_origin;
    /* The present access: */
    uint8_t *at[LANES]; /* the defined bits of the register's bytes, or NULL if all are defined */
    uint64_t va[LANES];
    uint64_t moved;   /* lanes that took part */
    unsigned have;    /* bytes that a scalar access has */
    uint64_t to_host; /* lanes whose stores the host sees */
};

/* The defined bits of a workgroup's own memory. */
struct softgpu_group_bits {
    uint8_t *lds, *scratch;
    size_t lds_size, scratch_size;
};

/* Returns false if the user has turned off the following of undefined bits. */
bool softgpu_defined_enabled(void);

/* Executes a memory instruction and follows the bits that it moves. */
void softgpu_defined_memory(struct wave *w, const struct inst *i);

/* Reports that a wave uses undefined bits: "branch", "address" or "host". */
void softgpu_report_use(struct wave *w, const struct inst *i, int lane, const char *use,
                        const struct softgpu_origin *origin);

/* Reports that a wave uses an undefined bit of these registers, if there is one, and counts them as
 * defined from then on. */
void softgpu_use_lanes(struct wave *w, const struct inst *i, unsigned reg, unsigned count,
                       uint64_t mask, const char *use);
void softgpu_use_scalars(struct wave *w, const struct inst *i, unsigned reg, unsigned count,
                         const char *use);

/* Notes that the program asked for a copy to memory that the device does not know, which is the
 * host's.
 */
void softgpu_copy_back(uint64_t from, uint64_t bytes, const struct softgpu_place *place);
/* Reports an undefined byte of an allocation that a copy by HIP's own kernels takes to the host. */
void softgpu_copy_takes(uint64_t va, uint64_t bytes);

#endif
