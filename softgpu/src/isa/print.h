/* Declares functions that append parts of an instruction's text to a buffer. */
#ifndef SOFTGPU_PRINT_H
#define SOFTGPU_PRINT_H

#include "isa.h"

struct text {
    char *at;
    size_t left;
    enum target_mask target; /* target whose syntax is printed */
};

void softgpu_put(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void softgpu_put_operand(struct text *t, const struct operand *o);
void softgpu_put_register(struct text *t, const struct operand *o, unsigned dwords);

/* Prints an instruction's operands and modifiers, which follow the mnemonic. */
void softgpu_print_scalar(struct text *t, const struct inst *i);
void softgpu_print_valu(struct text *t, const struct inst *i);
void softgpu_print_memory(struct text *t, const struct inst *i);
void softgpu_print_mimg(struct text *t, const struct inst *i);

#endif
