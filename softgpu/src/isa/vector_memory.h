/* Rows that the tables FLAT, GLOBAL, SCRATCH and MUBUF share, with equal opcodes. SCRATCH has no
 * atomics. */
#ifndef SOFTGPU_ISA_VECTOR_MEMORY_H
#define SOFTGPU_ISA_VECTOR_MEMORY_H

// clang-format off
#define LOADS_AND_STORES(family)                                             \
    ROW(0x10, #family "_load_ubyte", ALL, B32, NONE, MV_LOAD_U8)             \
    ROW(0x11, #family "_load_sbyte", ALL, B32, NONE, MV_LOAD_I8)             \
    ROW(0x12, #family "_load_ushort", ALL, B32, NONE, MV_LOAD_U16)           \
    ROW(0x13, #family "_load_sshort", ALL, B32, NONE, MV_LOAD_I16)           \
    ROW(0x14, #family "_load_dword", ALL, B32, NONE, MV_LOAD_32)             \
    ROW(0x15, #family "_load_dwordx2", ALL, B64, NONE, MV_LOAD_64)           \
    ROW(0x16, #family "_load_dwordx3", ALL, B96, NONE, MV_LOAD_96)           \
    ROW(0x17, #family "_load_dwordx4", ALL, B128, NONE, MV_LOAD_128)         \
    ROW(0x18, #family "_store_byte", ALL, NONE, B32, MV_STORE_8)             \
    ROW(0x19, #family "_store_byte_d16_hi", ALL, NONE, B32, MV_STORE_8_HI)   \
    ROW(0x1a, #family "_store_short", ALL, NONE, B32, MV_STORE_16)           \
    ROW(0x1b, #family "_store_short_d16_hi", ALL, NONE, B32, MV_STORE_16_HI) \
    ROW(0x1c, #family "_store_dword", ALL, NONE, B32, MV_STORE_32)           \
    ROW(0x1d, #family "_store_dwordx2", ALL, NONE, B64, MV_STORE_64)         \
    ROW(0x1e, #family "_store_dwordx3", ALL, NONE, B96, MV_STORE_96)         \
    ROW(0x1f, #family "_store_dwordx4", ALL, NONE, B128, MV_STORE_128)       \
    ROW(0x20, #family "_load_ubyte_d16", ALL, B32, NONE, MV_LOAD_U8_LO)      \
    ROW(0x21, #family "_load_ubyte_d16_hi", ALL, B32, NONE, MV_LOAD_U8_HI)   \
    ROW(0x22, #family "_load_sbyte_d16", ALL, B32, NONE, MV_LOAD_I8_LO)      \
    ROW(0x23, #family "_load_sbyte_d16_hi", ALL, B32, NONE, MV_LOAD_I8_HI)   \
    ROW(0x24, #family "_load_short_d16", ALL, B32, NONE, MV_LOAD_16_LO)      \
    ROW(0x25, #family "_load_short_d16_hi", ALL, B32, NONE, MV_LOAD_16_HI)

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
