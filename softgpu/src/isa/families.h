/* Each encoding family has one table of rows, which the family's file defines. */
#ifndef SOFTGPU_FAMILIES_H
#define SOFTGPU_FAMILIES_H

#include "isa.h"

struct rows {
    const struct row *rows;
    size_t count;
};

extern const struct rows softgpu_rows_sop1, softgpu_rows_sop2, softgpu_rows_sopk, softgpu_rows_sopc,
    softgpu_rows_sopp, softgpu_rows_smem, softgpu_rows_vop1, softgpu_rows_vop2, softgpu_rows_vopc,
    softgpu_rows_vop3, softgpu_rows_vop3p, softgpu_rows_mai, softgpu_rows_ds, softgpu_rows_flat,
    softgpu_rows_global, softgpu_rows_scratch, softgpu_rows_mubuf, softgpu_rows_mimg;

/* A flag in a row's `info`: the instruction multiplies a sparse matrix A. A stores two of every
 * four elements, and src2 contains the indices of the stored elements. */
#define SPARSE_MATRIX 0x80000000u

/* A row whose `info` says what the instruction does: a move of memory, or a shape of matrices. */
#define INFO_ROW(op_, name_, targets_, dst_, a_, b_, c_, info_)                                    \
    {.op = op_,                                                                                    \
     .name = name_,                                                                                \
     .targets = targets_,                                                                          \
     .dst = dst_,                                                                                  \
     .src = {a_, b_, c_},                                                                          \
     .info = info_},

#define FAMILY(table) {table, sizeof table / sizeof table[0]}

/* Handlers that execute the instructions of each family; decoding may select a faster handler. */
step_fn softgpu_run_sop1, softgpu_run_sop2, softgpu_run_sopk, softgpu_run_sopc, softgpu_run_smem,
    softgpu_run_mfma, softgpu_run_smfmac, softgpu_run_ds, softgpu_run_flat, softgpu_run_scratch,
    softgpu_run_mubuf, softgpu_run_load_lds, softgpu_run_readfirstlane, softgpu_run_readlane,
    softgpu_run_writelane, softgpu_run_swap, softgpu_run_accvgpr, softgpu_run_nop;

/* Decodes the operands and modifiers of a found row (decode_valu.c, decode_memory.c). */
void softgpu_decode_valu(enum target_mask target, const uint32_t *words, size_t available,
                         struct inst *i);
void softgpu_decode_memory(enum target_mask target, const uint32_t *words, struct inst *i);

/* Returns the row of an opcode, or NULL if this target lacks the opcode (decode.c). */
const struct row *softgpu_row(enum target_mask target, enum encoding encoding, unsigned op);

/* Decodes one operand (decode_operand.c). Returns false if no source has this encoding. */
bool softgpu_decode_source(struct operand *o, unsigned enc, enum type type, uint32_t literal);
void softgpu_decode_sgpr(struct operand *o, unsigned enc, enum type type);
void softgpu_decode_vgpr(struct operand *o, unsigned reg, enum type type);

#endif
