/* Decodes operands: registers, inline constants and literals. */
#include "families.h"

void softgpu_decode_sgpr(struct operand *o, unsigned enc, enum type type) {
    *o = (struct operand){.kind = O_SGPR, .type = type, .reg = enc, .enc = enc, .sel = SEL_DWORD};
}

void softgpu_decode_vgpr(struct operand *o, unsigned reg, enum type type) {
    *o = (struct operand){
        .kind = O_VGPR, .type = type, .reg = reg, .enc = 256 + reg, .sel = SEL_DWORD};
}

/* The floating-point inline constants 0.5, -0.5, 1, -1, 2, -2, 4, -4 and 1/(2 pi). A 16-bit integer
 * operand gets the low half of the single-precision constant. */
static uint64_t inline_float(unsigned enc, enum type type) {
    static const uint16_t half[] = {0x3800, 0xb800, 0x3c00, 0xbc00, 0x4000,
                                    0xc000, 0x4400, 0xc400, 0x3118};
    static const uint32_t single[] = {0x3f000000, 0xbf000000, 0x3f800000, 0xbf800000, 0x40000000,
                                      0xc0000000, 0x40800000, 0xc0800000, 0x3e22f983};
    static const uint64_t full[] = {0x3fe0000000000000, 0xbfe0000000000000, 0x3ff0000000000000,
                                    0xbff0000000000000, 0x4000000000000000, 0xc000000000000000,
                                    0x4010000000000000, 0xc010000000000000, 0x3fc45f306dc9c882};
    unsigned n = enc - 240;
    if (type == F16 || type == PF16)
        return half[n];
    if (type != PF32 && type != PB32 && softgpu_type_dwords(type) == 2)
        return full[n];
    return single[n];
}

/* Decodes a 9-bit source operand. Returns false if no source has this encoding. */
bool softgpu_decode_source(struct operand *o, unsigned enc, enum type type, uint32_t literal) {
    *o = (struct operand){.type = type, .enc = enc, .sel = SEL_DWORD};
    if (enc >= 256) {
        softgpu_decode_vgpr(o, enc - 256, type);
    } else if (enc < 128) {
        softgpu_decode_sgpr(o, enc, type);
        return enc != 125;
    } else if (enc <= 208) {
        o->kind = O_CONST;
        o->bits = enc <= 192 ? enc - 128 : (uint64_t)(int64_t)(192 - (int)enc);
        if (softgpu_type_dwords(type) < 2)
            o->bits = (uint32_t)o->bits;
    } else if (enc >= 240 && enc <= 248) {
        o->kind = O_CONST;
        o->bits = inline_float(enc, type);
    } else if (enc == 255) {
        o->kind = O_LITERAL;
        if (type == F64)
            o->bits = (uint64_t)literal << 32;
        else if (type == I64)
            o->bits = (uint64_t)(int64_t)(int32_t)literal;
        else
            o->bits = literal;
    } else if ((enc >= 235 && enc <= 238) || (enc >= 251 && enc <= 253)) {
        o->kind = O_SPECIAL;
        o->reg = enc;
    } else {
        return false;
    }
    return true;
}
