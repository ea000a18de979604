/* Bits of registers and memory that were never written are undefined. The checker reports a wave
 * that uses an undefined bit in a branch, in an address, or in a store that the host can read. A
 * load or a move does not count as a use.
 *
 * If an instruction reads undefined bits, the checker runs the instruction several times with
 * different values in these bits. Result bits that differ between the runs are undefined. The
 * checker therefore needs no rules for single instructions, and never reports an undefined bit that
 * has no effect. A result bit that is equal in all runs by chance counts as defined.
 *
 * Only the wave's thread uses this state; all threads share the bits of allocations (shadow.h). */
#ifndef SOFTGPU_CHECK_DEFINED_H
#define SOFTGPU_CHECK_DEFINED_H

#include "../isa/memory.h"
#include "shadow.h"

enum softgpu_memory { SOFTGPU_REGISTER, SOFTGPU_GLOBAL, SOFTGPU_WORKGROUP, SOFTGPU_SCRATCH };

/* The load that put undefined bits into a register. A register that was never written has no
 * origin. */
struct softgpu_origin {
    const struct inst *inst;
    uint64_t pc, va;
    enum softgpu_memory memory;
};

/* The undefined bits of one wave. */
struct softgpu_defined {
    uint64_t holes[VGPR_ROWS];    /* lanes with an undefined bit */
    uint32_t v[VGPR_ROWS][LANES]; /* the undefined bits of each lane */
    uint32_t s[SGPRS];            /* undefined bits */
    bool scc;                     /* is undefined */
    struct softgpu_origin v_origin[VGPR_ROWS], s_origin[SGPRS], scc_origin;
    /* The current access: */
    uint8_t *at[LANES]; /* the defined bits for the lane's memory, or NULL if all bits are
                         * defined */
    uint64_t va[LANES];
    uint64_t moved;   /* lanes that have accessed memory */
    unsigned have;    /* how many bytes a scalar access may read or write */
    uint64_t to_host; /* lanes whose stores the host can read */
};

/* The defined bits of a workgroup's LDS and scratch. */
struct softgpu_group_bits {
    uint8_t *lds, *scratch;
    size_t lds_size, scratch_size;
};

/* Returns false if the user has turned off the tracking of undefined bits. */
bool softgpu_defined_enabled(void);

/* Executes a memory instruction and follows the bits that it moves. */
void softgpu_defined_memory(struct wave *w, const struct inst *i);

/* Reports that a wave uses undefined bits; `use` is "branch", "address" or "host". */
void softgpu_report_use(struct wave *w, const struct inst *i, int lane, const char *use,
                        const struct softgpu_origin *origin);

/* Reports a use of undefined bits if the registers contain any, and marks the registers as
 * defined. */
void softgpu_use_lanes(struct wave *w, const struct inst *i, unsigned reg, unsigned count,
                       uint64_t mask, const char *use);
void softgpu_use_scalars(struct wave *w, const struct inst *i, unsigned reg, unsigned count,
                         const char *use);

/* Notes that the program requested a copy from device memory to host memory, and returns the copy's
 * number. Memory without shadow bits counts as host memory. */
size_t softgpu_copy_back(uint64_t from, uint64_t bytes, const struct softgpu_place *place);
/* Reports undefined bytes that one of HIP's own kernels copies from `va` to the host. */
void softgpu_copy_takes(uint64_t va, uint64_t bytes);
/* Notes that a copy to pageable memory has ended. Reports the copy's undefined bytes if the device
 * did not make the copy. HIP makes copies of up to 64 bytes with the CPU. */
void softgpu_copy_returned(size_t number);

#endif
