/* Prints the parts of an instruction's text: registers and constants. */
#include "families.h"
#include "print.h"

#include <stdarg.h>
#include <stdio.h>

void softgpu_put(struct text *t, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = vsnprintf(t->at, t->left, format, args);
    va_end(args);
    if (n < 0)
        return;
    size_t used = (size_t)n < t->left ? (size_t)n : t->left - 1;
    t->at += used;
    t->left -= used;
}

static bool put_named(struct text *t, unsigned reg, unsigned dwords) {
    static const struct {
        unsigned reg;
        const char *name;
    } pairs[] = {{SGPR_FLAT_SCRATCH, "flat_scratch"},
                 {SGPR_XNACK_MASK, "xnack_mask"},
                 {SGPR_VCC, "vcc"},
                 {SGPR_EXEC, "exec"}};
    if (reg == SGPR_M0 && dwords == 1) {
        softgpu_put(t, "m0");
        return true;
    }
    for (unsigned n = 0; n < sizeof pairs / sizeof pairs[0]; n++) {
        if (dwords == 2 && reg == pairs[n].reg) {
            softgpu_put(t, "%s", pairs[n].name);
            return true;
        }
        if (dwords == 1 && (reg & ~1u) == pairs[n].reg) {
            softgpu_put(t, "%s_%s", pairs[n].name, reg & 1 ? "hi" : "lo");
            return true;
        }
    }
    return false;
}

void softgpu_put_register(struct text *t, const struct operand *o, unsigned dwords) {
    unsigned reg = o->reg;
    const char *file = "s";
    if (o->kind == O_VGPR) {
        file = reg >= AGPR0 ? "a" : "v";
        reg %= AGPR0;
    } else if (put_named(t, reg, dwords)) {
        return;
    } else if (reg >= 108 && reg < SGPR_M0) {
        file = "ttmp";
        reg -= 108;
    }
    if (dwords == 1)
        softgpu_put(t, "%s%u", file, reg);
    else
        softgpu_put(t, "%s[%u:%u]", file, reg, reg + dwords - 1);
}

static void put_special(struct text *t, unsigned enc) {
    static const char *const apertures[] = {"src_shared_base", "src_shared_limit",
                                            "src_private_base", "src_private_limit"};
    static const char *const bits[] = {"src_vccz", "src_execz", "src_scc"};
    softgpu_put(t, "%s", enc < 240 ? apertures[enc - 235] : bits[enc - 251]);
}

/* Returns true for a literal that an inline constant could express. The printer marks such a
 * literal with `lit`, so that reassembly gives identical bytes. */
static bool could_be_inline(const struct operand *o) {
    static const uint32_t singles[] = {0x3f000000, 0x3f800000, 0x40000000, 0x40800000};
    uint64_t value = o->bits;
    int64_t number = softgpu_type_dwords(o->type) == 2 ? (int64_t)value : (int32_t)value;
    if (o->type >= B16 && o->type <= F16) {
        number = (int16_t)value;
        uint16_t half = value & 0x7fff;
        if (half == 0x3800 || half == 0x3c00 || half == 0x4000 || half == 0x4400 ||
            (uint16_t)value == 0x3118)
            return true;
    } else if (o->type == F64) {
        uint32_t top = value >> 32 & 0x7fffffff;
        return value == 0 || top == 0x3fe00000 || top == 0x3ff00000 || top == 0x40000000 ||
               top == 0x40100000;
    } else {
        for (unsigned n = 0; n < sizeof singles / sizeof singles[0]; n++)
            if ((value & 0x7fffffff) == singles[n])
                return true;
        if (value == 0x3e22f983)
            return true;
    }
    return number >= -16 && number <= 64;
}

static void put_literal(struct text *t, const struct operand *o) {
    uint32_t value = (uint32_t)(o->type == F64 ? o->bits >> 32 : o->bits);
    if (o->type >= B16 && o->type <= F16)
        value &= 0xffff;
    softgpu_put(t, could_be_inline(o) ? "lit(0x%x)" : "0x%x", value);
}

/* Prints a float constant of a 16-bit integer operand as f16 bits, as LLVM's tools do. The hardware
 * uses the low 16 bits of the f32 constant. */
static void put_half(struct text *t, unsigned enc) {
    struct operand half;
    softgpu_decode_source(&half, enc, F16, 0);
    softgpu_put(t, "0x%x", (unsigned)half.bits);
}

void softgpu_put_operand(struct text *t, const struct operand *o) {
    static const char *const floats[] = {"0.5",  "-0.5", "1.0",  "-1.0",      "2.0",
                                         "-2.0", "4.0",  "-4.0", "0.15915494"};
    switch (o->kind) {
    case O_SGPR:
    case O_VGPR:
        softgpu_put_register(t, o, softgpu_type_dwords(o->type));
        break;
    case O_CONST:
        if (o->enc >= 240 && o->type >= B16 && o->type < F16)
            put_half(t, o->enc);
        else if (o->enc == 248 && softgpu_type_dwords(o->type) == 2 && o->type != PF32)
            softgpu_put(t, "0.15915494309189532");
        else if (o->enc >= 240)
            softgpu_put(t, "%s", floats[o->enc - 240]);
        else
            softgpu_put(t, "%d", o->enc <= 192 ? o->enc - 128 : 192 - o->enc);
        break;
    case O_LITERAL:
        put_literal(t, o);
        break;
    case O_SPECIAL:
        put_special(t, o->reg);
        break;
    }
}
