/* Declares memory instructions: the bytes that they move, and the location of each lane's bytes. */
#ifndef SOFTGPU_ISA_MEMORY_H
#define SOFTGPU_ISA_MEMORY_H

#include "exec.h"
#include "families.h"

/* The kind of move, in a row's `info`. LO and HI loads fill one half of a register and preserve the
 * other half. */
enum move {
    MV_NONE,
    MV_LOAD_U8,
    MV_LOAD_I8,
    MV_LOAD_U16,
    MV_LOAD_I16,
    MV_LOAD_U8_LO,
    MV_LOAD_U8_HI,
    MV_LOAD_I8_LO,
    MV_LOAD_I8_HI,
    MV_LOAD_16_LO,
    MV_LOAD_16_HI,
    MV_LOAD_32,
    MV_LOAD_64,
    MV_LOAD_96,
    MV_LOAD_128,
    MV_STORE_8,
    MV_STORE_8_HI,
    MV_STORE_16,
    MV_STORE_16_HI,
    MV_STORE_32,
    MV_STORE_64,
    MV_STORE_96,
    MV_STORE_128,
    MV_ATOMIC_32,
    MV_ATOMIC_64,
    MV_CACHE,  /* no effect, because emulated memory is coherent */
    MV_LDS_U8, /* from global to workgroup memory, a dword for each lane */
    MV_LDS_I8,
    MV_LDS_U16,
    MV_LDS_I16,
    MV_LDS_32,
    MV_FORMAT,     /* typed buffer access: not emulated */
    MV_IMAGE_LOAD, /* images: not emulated */
    MV_IMAGE_STORE,
    MV_IMAGE_SAMPLE,
    MV_IMAGE_GATHER,
    DS_NONE,       /* not emulated */
    DS_NO_ADDRESS, /* instructions without an address operand: not emulated */
    DS_NOP,
    DS_GWS_INIT,
    DS_GWS_BARRIER,
    DS_SWIZZLE,
    DS_PERMUTE,
    DS_BPERMUTE,
    DS_READ2_32,
    DS_READ2_64,
    DS_READ2ST64_32,
    DS_READ2ST64_64,
    DS_WRITE2_32,
    DS_WRITE2_64,
    DS_WRITE2ST64_32,
    DS_WRITE2ST64_64,
    DS_WRXCHG2_32,
    DS_WRXCHG2_64,
    DS_WRXCHG2ST64_32,
    DS_WRXCHG2ST64_64,
    MV_KINDS
};

enum atomic_op {
    SWAP,
    CMPSWAP,
    ADD,
    SUB,
    RSUB,
    SMIN,
    UMIN,
    SMAX,
    UMAX,
    AND,
    OR,
    XOR,
    INC,
    DEC,
    MSKOR,
    WRAP,
    ADD_F,
    MIN_F,
    MAX_F,
    ADD_PK_F16,
    ADD_PK_BF16,
    DS_CMPSWAP,
    DS_CMPSWAP_F
};

#define ATOMIC32(op) (MV_ATOMIC_32 | (op) << 8)
#define ATOMIC64(op) (MV_ATOMIC_64 | (op) << 8)

static inline enum move move_of(const struct row *row) {
    return row->info & 0xff;
}
static inline enum atomic_op atomic_of(const struct row *row) {
    return row->info >> 8;
}

/* Returns how many bytes one lane moves. */
unsigned softgpu_move_bytes(enum move move);

/* The location of each lane's bytes. Consecutive dwords of a lane are `stride` bytes apart: 4 in
 * ordinary memory. */
struct access {
    char *at[LANES];
    uint64_t mask;
    uint32_t stride;
};

/* Returns the host address of `va`, or NULL if no mapping contains [va, va + size). The group
 * caches the mapping. */
char *softgpu_host_address(struct wave *w, uint64_t va, uint64_t size);

/* Stops a wave with a fault that names the address. */
void softgpu_memory_fault(struct wave *w, const struct inst *i, int lane, const char *what,
                          uint64_t va, unsigned size);

/* Stops a wave with a fault at an offset of workgroup memory or scratch. It is no address, so ROCr
 * must not report it as one. */
void softgpu_offset_fault(struct wave *w, const struct inst *i, int lane, const char *what,
                          uint32_t offset, unsigned size);

/* Locates the bytes of the lanes in a mask; returns false after a fault. */
bool softgpu_locate_global(struct wave *w, const struct inst *i, const uint64_t *va, uint64_t mask,
                           struct access *a);
bool softgpu_locate_lds(struct wave *w, const struct inst *i, const uint32_t *offset, uint64_t mask,
                        unsigned bytes, struct access *a);

/* Moves data between registers and memory. */
void softgpu_transfer(struct wave *w, const struct inst *i, const struct access *a);
/* Moves data between registers and scratch. `base` is the offset of the wave's scratch in the
 * group's scratch; each lane has its own offset, which need not be aligned. */
void softgpu_transfer_scratch(struct wave *w, const struct inst *i, uint64_t base,
                              const uint32_t *offset, uint64_t mask);

/* Runs a lane's atomic operation, and returns the old value. `data2`: a second operand, if any. */
uint64_t softgpu_atomic32(char *at, enum atomic_op op, uint32_t data, uint32_t data2);
uint64_t softgpu_atomic64(char *at, enum atomic_op op, uint64_t data, uint64_t data2);

#endif
