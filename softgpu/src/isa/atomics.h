/* The integer atomics of the tables FLAT, GLOBAL and MUBUF, which have equal opcodes. */
#ifndef SOFTGPU_ISA_ATOMICS_H
#define SOFTGPU_ISA_ATOMICS_H

// clang-format off
#define INTEGER_ATOMICS(family)                                                \
    ROW(0x40, #family "_atomic_swap", ALL, B32, B32, ATOMIC32(SWAP))           \
    ROW(0x41, #family "_atomic_cmpswap", ALL, B32, B64, ATOMIC32(CMPSWAP))     \
    ROW(0x42, #family "_atomic_add", ALL, B32, B32, ATOMIC32(ADD))             \
    ROW(0x43, #family "_atomic_sub", ALL, B32, B32, ATOMIC32(SUB))             \
    ROW(0x44, #family "_atomic_smin", ALL, B32, B32, ATOMIC32(SMIN))           \
    ROW(0x45, #family "_atomic_umin", ALL, B32, B32, ATOMIC32(UMIN))           \
    ROW(0x46, #family "_atomic_smax", ALL, B32, B32, ATOMIC32(SMAX))           \
    ROW(0x47, #family "_atomic_umax", ALL, B32, B32, ATOMIC32(UMAX))           \
    ROW(0x48, #family "_atomic_and", ALL, B32, B32, ATOMIC32(AND))             \
    ROW(0x49, #family "_atomic_or", ALL, B32, B32, ATOMIC32(OR))               \
    ROW(0x4a, #family "_atomic_xor", ALL, B32, B32, ATOMIC32(XOR))             \
    ROW(0x4b, #family "_atomic_inc", ALL, B32, B32, ATOMIC32(INC))             \
    ROW(0x4c, #family "_atomic_dec", ALL, B32, B32, ATOMIC32(DEC))             \
    ROW(0x60, #family "_atomic_swap_x2", ALL, B64, B64, ATOMIC64(SWAP))        \
    ROW(0x61, #family "_atomic_cmpswap_x2", ALL, B64, B128, ATOMIC64(CMPSWAP)) \
    ROW(0x62, #family "_atomic_add_x2", ALL, B64, B64, ATOMIC64(ADD))          \
    ROW(0x63, #family "_atomic_sub_x2", ALL, B64, B64, ATOMIC64(SUB))          \
    ROW(0x64, #family "_atomic_smin_x2", ALL, B64, B64, ATOMIC64(SMIN))        \
    ROW(0x65, #family "_atomic_umin_x2", ALL, B64, B64, ATOMIC64(UMIN))        \
    ROW(0x66, #family "_atomic_smax_x2", ALL, B64, B64, ATOMIC64(SMAX))        \
    ROW(0x67, #family "_atomic_umax_x2", ALL, B64, B64, ATOMIC64(UMAX))        \
    ROW(0x68, #family "_atomic_and_x2", ALL, B64, B64, ATOMIC64(AND))          \
    ROW(0x69, #family "_atomic_or_x2", ALL, B64, B64, ATOMIC64(OR))            \
    ROW(0x6a, #family "_atomic_xor_x2", ALL, B64, B64, ATOMIC64(XOR))          \
    ROW(0x6b, #family "_atomic_inc_x2", ALL, B64, B64, ATOMIC64(INC))          \
    ROW(0x6c, #family "_atomic_dec_x2", ALL, B64, B64, ATOMIC64(DEC))

#endif
