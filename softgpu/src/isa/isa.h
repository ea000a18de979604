/* Declares the GFX9 ISA (gfx906, gfx908, gfx90a, gfx942) in wave64: decoded instructions, and the
 * state that they change.
 *
 * words -> decode*.c -> struct inst -> the handler of its encoding family -> one row's meaning
 *
 * A row of a .def table specifies an instruction's spelling, encoding and types, and names the
 * function that computes the result. The family's handler fetches operands and stores results. The
 * row's function therefore gets plain values: 64 lanes in vector instructions. */
#ifndef SOFTGPU_ISA_H
#define SOFTGPU_ISA_H

#include "../check/hooks.h"
#include "../device.h"

#include <string.h>

enum { LANES = 64, SGPRS = 128, VGPRS = 512, WAVES_PER_GROUP = 16 };

/* Vector registers 0..255 are v0..v255 and 256..511 are a0..a255. The array has extra rows, so that
 * a wide operand that begins near the last register does not exceed the array. */
enum { AGPR0 = 256, VGPR_ROWS = VGPRS + 32 };

/* Scalar registers with a special meaning, numbered as in the encodings. */
enum {
    SGPR_FLAT_SCRATCH = 102,
    SGPR_XNACK_MASK = 104,
    SGPR_VCC = 106,
    SGPR_M0 = 124,
    SGPR_EXEC = 126,
};

enum target_mask {
    GFX906 = 1,
    GFX908 = 2,
    GFX90A = 4,
    GFX942 = 8,
    SINCE908 = 14,
    SINCE90A = 12,
    UNTIL908 = 3,
    UNTIL90A = 7,
    ONLY908_90A = 6,
    ALL = 15
};

/* The type of an operand: its width, and the meaning of inline constants and modifiers. */
enum type {
    NONE,
    B16,
    I16,
    U16,
    F16,
    B32,
    I32,
    U32,
    F32,
    PI16,
    PF16,
    B64,
    I64,
    U64,
    F64,
    PF32,
    PB32,
    B96,
    B128,
    B160,
    B256,
    B512,
    B1024,
    MASK,  /* one bit for each lane, in a pair of SGPRs */
    SDST,  /* an SGPR that a vector instruction writes */
    SLANE, /* an operand that must be scalar, such as a lane number */
    TYPES
};

enum row_flag {
    FP = 1,          /* obeys the rounding and denormal bits of MODE */
    ACC = 2,         /* the destination is also src2 */
    CARRY_IN = 4,    /* reads a lane mask from VCC, or in VOP3 from src2 */
    CARRY_OUT = 8,   /* also writes a lane mask: to VCC, or in VOP3 to sdst */
    OPSEL = 16,      /* op_sel chooses 16-bit halves; the result's other half is preserved */
    CMPX = 32,       /* the compare's result is also written to EXEC */
    LITK = 64,       /* v_madmk, v_madak: the word after the instruction is a constant */
    NOSDWA = 128,    /* has no SDWA or DPP form */
    NOE64 = 256,     /* has no VOP3 form */
    MEMTO = 512,     /* loads data into the destination: s_load, ds_read, ... */
    HALFKEEP = 1024, /* writes one half of the destination register and preserves the other half */
    MIX = 2048,      /* each source is f32, or a half of an f16 pair, as op_sel_hi selects */
    SAT = 4096,      /* clamp saturates the integer result */
    NOCLAMP = 8192,  /* the effect of clamp on the result is unknown */
};

struct wave;
struct inst;
struct lanes;

typedef void lanes_fn(struct lanes *);
typedef uint64_t scalar_fn(struct wave *, uint64_t, uint64_t);
typedef void step_fn(struct wave *, const struct inst *);

struct row {
    const char *name;
    uint16_t op;
    uint8_t targets;
    uint8_t dst, src[3];
    uint16_t flags;
    uint32_t info; /* memory instructions: the kind of move (see memory.h); MFMA: the shape */
    union {
        lanes_fn *lanes;
        scalar_fn *scalar;
        step_fn *step;
    } fn;
};

enum operand_kind {
    O_NONE,
    O_SGPR,
    O_VGPR,
    O_CONST,   /* an inline constant, already in the operand's type */
    O_LITERAL, /* a literal: the word after the instruction */
    O_SPECIAL, /* apertures, vccz, execz, scc */
};

enum { NEG = 1, ABS = 2, SEXT = 4 };

/* The part of a register that SDWA reads or writes. */
enum sdwa_sel { SEL_BYTE0, SEL_BYTE1, SEL_BYTE2, SEL_BYTE3, SEL_WORD0, SEL_WORD1, SEL_DWORD };

struct operand {
    uint8_t kind, type, mods, sel;
    uint16_t
        reg; /* number of the SGPR or vector register; the encoded value of a special operand */
    uint16_t enc;  /* the operand's encoded value */
    uint64_t bits; /* O_CONST, O_LITERAL */
};

enum encoding {
    E_SOP1,
    E_SOP2,
    E_SOPK,
    E_SOPC,
    E_SOPP,
    E_SMEM,
    E_VOP1,
    E_VOP2,
    E_VOPC,
    E_VOP3,
    E_VOP3P,
    E_MAI,
    E_DS,
    E_FLAT,
    E_GLOBAL,
    E_SCRATCH,
    E_MUBUF,
    E_MIMG,
    ENCODINGS
};

struct inst {
    step_fn *run;
    const struct row *row;     /* NULL: this target has no such instruction */
    const struct inst *target; /* target of a direct branch */
    struct operand dst, sdst, src[3];
    uint32_t words[3];
    uint32_t offset; /* in bytes, from the start of the decoded code */
    int32_t imm;     /* simm16, or a memory instruction's offset */
    uint8_t size;    /* in words */
    uint8_t encoding;
    bool e64; /* a VOP1, VOP2 or VOPC instruction in VOP3's encoding */
    bool sdwa, dpp;
    bool clamp;
    uint8_t omod;
    uint8_t op_sel, op_sel_hi, neg_lo, neg_hi;
    uint8_t dst_sel, dst_unused;
    uint16_t dpp_ctrl;
    uint8_t row_mask, bank_mask;
    bool bound_ctrl;
    bool glc, slc, scc, lds, gds, idxen, offen, soffset_en, imm_en;
    uint8_t cbsz, abid, blgp;
};

/* The execution states of a wave. */
enum stop { RUNNING, YIELDED, AT_BARRIER, ENDED, FAULTED };

struct group;

struct wave {
    const struct inst *next; /* the next instruction to run */
    const struct code *code; /* the decoded function that contains `next` */
    struct group *group;
    uint8_t stop; /* enum stop */
    bool scc;
    bool fp_special; /* mode_is_special */
    uint8_t index;   /* index of the wave in its group */
    bool gws_waits;  /* the wave waits at a grid barrier, in the generation gws_generation */
    uint32_t gws_generation;
    uint32_t mode, trapsts;
    uint64_t instructions;
    uint64_t scratch_offset; /* offset of this wave's scratch in the group's scratch */
    uint32_t s[SGPRS] __attribute__((aligned(64)));
    uint64_t expanded_exec; /* the EXEC value that lane_mask was computed from */
    uint32_t lane_mask[LANES] __attribute__((aligned(64)));
    uint32_t v[VGPR_ROWS][LANES] __attribute__((aligned(64)));
    struct softgpu_defined *defined; /* the checker's; NULL: bits are not followed */
};

/* Operands and results of a vector instruction. A 64-bit value's high words follow its 64 low
 * words, as in registers, so most operands point directly at the registers. */
struct lanes {
    uint32_t *d;
    const uint32_t *a, *b, *c;
    uint64_t exec; /* lanes whose result is stored */
    uint64_t in;   /* carry or condition, one bit for each lane */
    uint64_t out;
    struct wave *w;
    const struct inst *i;
};

static inline uint64_t sgpr64(const struct wave *w, unsigned r) {
    return w->s[r] | (uint64_t)w->s[r + 1] << 32;
}

static inline void set_sgpr64(struct wave *w, unsigned r, uint64_t value) {
    w->s[r] = (uint32_t)value;
    w->s[r + 1] = (uint32_t)(value >> 32);
}

static inline uint64_t wave_exec(const struct wave *w) {
    return sgpr64(w, SGPR_EXEC);
}
static inline uint64_t wave_vcc(const struct wave *w) {
    return sgpr64(w, SGPR_VCC);
}

enum {
    MODE_DX10_CLAMP = 1 << 8,
    MODE_IEEE = 1 << 9,
    MODE_FP16_OVFL = 1 << 23,
    MODE_GPR_IDX = 1 << 27,
};

/* Returns whether MODE flushes denormals, sets FP16_OVFL, or has a rounding mode other than
 * nearest-even. */
static inline bool mode_is_special(uint32_t mode) {
    return (mode & 0xff) != 0xf0 || mode & MODE_FP16_OVFL;
}

/* Returns how many dwords a type has (types.c). */
unsigned softgpu_type_dwords(enum type type);
unsigned
softgpu_type_float(enum type type); /* Returns 16, 32 or 64, or 0 if the type is not a float */

/* Decodes one instruction from `available` words; returns false if the words contain no instruction
 * of this target (decode.c). */
bool softgpu_decode(enum target_mask target, const uint32_t *words, size_t available,
                    struct inst *inst);
enum target_mask softgpu_target_mask(const struct softgpu_target *target);

/* Prints an instruction as llvm-objdump does, without the address (print.c). */
void softgpu_print(enum target_mask target, const struct inst *inst, uint64_t pc, char *text,
                   size_t size);

/* Stops a wave with a fault (stop.c). */
void softgpu_wave_fault(struct wave *w, const struct inst *i, int lane, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void softgpu_wave_jump(struct wave *w, const struct inst *i, uint64_t pc);

/* Handlers for vector instructions and for unknown instructions. */
step_fn softgpu_run_vop, softgpu_run_vop_full, softgpu_run_vopc;
step_fn softgpu_run_unknown;

#endif
