/* Defines the functions of scalar instructions. Each function computes a result from two operands
 * and SCC. */
#ifndef SOFTGPU_SCALAR_H
#define SOFTGPU_SCALAR_H

#include "families.h"
#include "operand.h"

#define SROW(op_, name_, dst_, s0_, s1_, fn_)                                                      \
    {.op = op_, .name = name_, .targets = ALL, .dst = dst_, .src = {s0_, s1_}, .fn.scalar = fn_},

/* Defines function `name`, which computes a result from a and b of C type T and leaves SCC
 * unchanged. */
#define S_OP(name, T, expr)                                                                        \
    static uint64_t name(struct wave *w, uint64_t a_, uint64_t b_) {                               \
        T a = (T)a_, b = (T)b_;                                                                    \
        (void)w, (void)a, (void)b;                                                                 \
        return (uint64_t)(expr);                                                                   \
    }

/* Defines a function that computes a result, and sets SCC to 1 if the result is nonzero, otherwise
 * to 0. */
#define S_LOGIC(name, T, expr)                                                                     \
    static uint64_t name(struct wave *w, uint64_t a_, uint64_t b_) {                               \
        T a = (T)a_, b = (T)b_;                                                                    \
        (void)a, (void)b;                                                                          \
        T r = (T)(expr);                                                                           \
        w->scc = r != 0;                                                                           \
        return (uint64_t)r;                                                                        \
    }

/* Defines a function that computes a result from `expr`, and SCC from `scc_expr`. */
#define S_SCC(name, T, expr, scc_expr)                                                             \
    static uint64_t name(struct wave *w, uint64_t a_, uint64_t b_) {                               \
        T a = (T)a_, b = (T)b_;                                                                    \
        (void)a, (void)b;                                                                          \
        T r = (T)(expr);                                                                           \
        w->scc = scc_expr;                                                                         \
        return (uint64_t)r;                                                                        \
    }

#endif
