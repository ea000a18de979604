/* Defines the functions that compute vector instructions: loops over 64 lanes, which the compiler
 * can vectorise. Each lane is loaded before it is stored, and lane n accesses only column n, so the
 * destination may also be a source. */
#ifndef SOFTGPU_LANES_H
#define SOFTGPU_LANES_H

#include "fp.h"
#include "isa.h"

/* The compiler makes two copies of each function, one of them for AVX2, FMA and F16C. The dynamic
 * loader selects a copy. Without these CPU features, an f32 fma is a library call that takes 5 ns
 * for each lane. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
#define VECTORISED __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define VECTORISED
#endif

#define EACH_LANE(l) _Pragma("GCC ivdep") for (int l = 0; l < LANES; l++)

/* Loads a lane of an operand as a C value of the operand's type. */
#define LOAD_B32(p) ((p)[l])
#define LOAD_U32(p) ((p)[l])
#define LOAD_I32(p) ((int32_t)(p)[l])
#define LOAD_F32(p) f32_of((p)[l])
#define LOAD_U16(p) ((uint32_t)(uint16_t)(p)[l])
#define LOAD_I16(p) ((int32_t)(int16_t)(p)[l])
#define LOAD_F16(p) f16_of((uint16_t)(p)[l])
#define LOAD_B64(p) ((p)[l] | (uint64_t)(p)[LANES + l] << 32)
#define LOAD_U64(p) LOAD_B64(p)
#define LOAD_I64(p) ((int64_t)LOAD_B64(p))
#define LOAD_F64(p) f64_of(LOAD_B64(p))

#define STORE_B32(x) d[l] = (uint32_t)(x)
#define STORE_U32(x) STORE_B32(x)
#define STORE_I32(x) STORE_B32(x)
#define STORE_F32(x) d[l] = bits_of_f32(x)
#define STORE_U16(x) d[l] = (uint16_t)(x)
#define STORE_I16(x) STORE_U16(x)
#define STORE_F16(x) d[l] = bits_of_f16(x)
#define STORE_B64(x)                                                                               \
    do {                                                                                           \
        uint64_t x_ = (uint64_t)(x);                                                               \
        d[l] = (uint32_t)x_;                                                                       \
        d[LANES + l] = (uint32_t)(x_ >> 32);                                                       \
    } while (0)
#define STORE_U64(x) STORE_B64(x)
#define STORE_I64(x) STORE_B64(x)
#define STORE_F64(x) STORE_B64(bits_of_f64(x))

/* Defines function `name`: D = expression of a, b and c, for operands of the given types. */
#define OP1(name, D, A, expr)                                                                      \
    VECTORISED static void name(struct lanes *o) {                                                 \
        uint32_t *d = o->d;                                                                        \
        const uint32_t *pa = o->a;                                                                 \
        EACH_LANE(l) {                                                                             \
            __auto_type a = LOAD_##A(pa);                                                          \
            STORE_##D(expr);                                                                       \
        }                                                                                          \
    }

#define OP2(name, D, A, B, expr)                                                                   \
    VECTORISED static void name(struct lanes *o) {                                                 \
        uint32_t *d = o->d;                                                                        \
        const uint32_t *pa = o->a, *pb = o->b;                                                     \
        EACH_LANE(l) {                                                                             \
            __auto_type a = LOAD_##A(pa);                                                          \
            __auto_type b = LOAD_##B(pb);                                                          \
            STORE_##D(expr);                                                                       \
        }                                                                                          \
    }

#define OP3(name, D, A, B, C, expr)                                                                \
    VECTORISED static void name(struct lanes *o) {                                                 \
        uint32_t *d = o->d;                                                                        \
        const uint32_t *pa = o->a, *pb = o->b, *pc = o->c;                                         \
        EACH_LANE(l) {                                                                             \
            __auto_type a = LOAD_##A(pa);                                                          \
            __auto_type b = LOAD_##B(pb);                                                          \
            __auto_type c = LOAD_##C(pc);                                                          \
            STORE_##D(expr);                                                                       \
        }                                                                                          \
    }

/* Returns whether MODE's IEEE bit is set. */
#define IEEE(o) (((o)->w->mode & MODE_IEEE) != 0)

#define VROW(op_, name_, targets_, dst_, s0_, s1_, s2_, flags_, fn_)                               \
    {.op = op_,                                                                                    \
     .name = name_,                                                                                \
     .targets = targets_,                                                                          \
     .dst = dst_,                                                                                  \
     .src = {s0_, s1_, s2_},                                                                       \
     .flags = flags_,                                                                              \
     .fn.lanes = fn_},

#endif
