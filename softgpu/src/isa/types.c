/* The types of operands: their width, and whether they are floating-point types. */
#include "isa.h"

static const struct {
    uint8_t dwords, floating;
} types[TYPES] = {
    [NONE] = {0, 0},  [B16] = {1, 0},   [I16] = {1, 0},    [U16] = {1, 0},  [F16] = {1, 16},
    [B32] = {1, 0},   [I32] = {1, 0},   [U32] = {1, 0},    [F32] = {1, 32}, [PI16] = {1, 0},
    [PF16] = {1, 16}, [B64] = {2, 0},   [I64] = {2, 0},    [U64] = {2, 0},  [F64] = {2, 64},
    [PF32] = {2, 32}, [PB32] = {2, 0},  [B96] = {3, 0},    [B128] = {4, 0}, [B160] = {5, 0},
    [B256] = {8, 0},  [B512] = {16, 0}, [B1024] = {32, 0}, [MASK] = {2, 0}, [SDST] = {1, 0},
    [SLANE] = {1, 0},
};

unsigned softgpu_type_dwords(enum type type) {
    return types[type].dwords;
}
unsigned softgpu_type_float(enum type type) {
    return types[type].floating;
}
