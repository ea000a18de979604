/* Prints scalar operands. */
#include "print.h"

static void put_hwreg(struct text *t, unsigned constant) {
    static const char *const names[] = {
        [1] = "HW_REG_MODE",    [2] = "HW_REG_STATUS",        [3] = "HW_REG_TRAPSTS",
        [4] = "HW_REG_HW_ID",   [5] = "HW_REG_GPR_ALLOC",     [6] = "HW_REG_LDS_ALLOC",
        [7] = "HW_REG_IB_STS",  [15] = "HW_REG_SH_MEM_BASES", [16] = "HW_REG_TBA_LO",
        [17] = "HW_REG_TBA_HI", [18] = "HW_REG_TMA_LO",       [19] = "HW_REG_TMA_HI"};
    static const char *const since942[] = {
        "HW_REG_XCC_ID", "HW_REG_SQ_PERF_SNAPSHOT_DATA", "HW_REG_SQ_PERF_SNAPSHOT_DATA1",
        "HW_REG_SQ_PERF_SNAPSHOT_PC_LO", "HW_REG_SQ_PERF_SNAPSHOT_PC_HI"};
    unsigned reg = constant & 63, shift = constant >> 6 & 31, width = (constant >> 11 & 31) + 1;
    softgpu_put(t, "hwreg(");
    if (reg < sizeof names / sizeof names[0] && names[reg])
        softgpu_put(t, "%s", names[reg]);
    else if (t->target == GFX942 && reg >= 20 && reg - 20 < sizeof since942 / sizeof *since942)
        softgpu_put(t, "%s", since942[reg - 20]);
    else
        softgpu_put(t, "%u", reg);
    if (shift || width != 32)
        softgpu_put(t, ", %u, %u", shift, width);
    softgpu_put(t, ")");
}

static void put_waitcnt(struct text *t, unsigned constant) {
    enum { VM_ALL = 63, EXP_ALL = 7, LGKM_ALL = 15 };
    unsigned vm = (constant & 15) | (constant >> 14 & 3) << 4, exp = constant >> 4 & 7;
    unsigned lgkm = constant >> 8 & 15;
    bool all = vm == VM_ALL && exp == EXP_ALL && lgkm == LGKM_ALL;
    if (all || vm != VM_ALL)
        softgpu_put(t, " vmcnt(%u)", vm);
    if (all || exp != EXP_ALL)
        softgpu_put(t, " expcnt(%u)", exp);
    if (all || lgkm != LGKM_ALL)
        softgpu_put(t, " lgkmcnt(%u)", lgkm);
}

static void put_message(struct text *t, unsigned constant) {
    static const char *const names[] = {[1] = "MSG_INTERRUPT", [4] = "MSG_SAVEWAVE"};
    if (constant == 1 || constant == 4)
        softgpu_put(t, " sendmsg(%s)", names[constant]);
    else
        softgpu_put(t, " sendmsg(%u, %u, %u)", constant & 15, constant >> 4 & 7, constant >> 8 & 3);
}

static void put_index_mode(struct text *t, unsigned constant) {
    static const char *const names[] = {"SRC0", "SRC1", "SRC2", "DST"};
    const char *separator = "";
    softgpu_put(t, " gpr_idx(");
    for (unsigned n = 0; n < 4; n++)
        if (constant >> n & 1) {
            softgpu_put(t, "%s%s", separator, names[n]);
            separator = ",";
        }
    softgpu_put(t, ")");
}

static void print_sopp(struct text *t, const struct inst *i) {
    unsigned constant = (uint16_t)i->imm;
    switch (i->row->op) {
    case 0x01: /* s_endpgm: LLVM prints the constant only if the constant is not 0 */
    case 0x03:
    case 0x0a:
    case 0x13:
    case 0x16:
    case 0x1b:
    case 0x1c:
    case 0x1e:
        if (constant)
            softgpu_put(t, " %u", constant);
        break;
    case 0x0c:
        put_waitcnt(t, constant);
        break;
    case 0x10:
    case 0x11:
        put_message(t, constant);
        break;
    case 0x00: /* s_nop: the operand is a plain number; opcodes without a case are branches */
    case 0x0b:
    case 0x0d:
    case 0x0e:
    case 0x0f:
    case 0x12:
    case 0x14:
    case 0x15:
        softgpu_put(t, constant <= 64 ? " %u" : " 0x%x", constant);
        break;
    case 0x1d:
        put_index_mode(t, constant);
        break;
    default:
        softgpu_put(t, " %u", constant);
    }
}

static void print_sopk(struct text *t, const struct inst *i) {
    unsigned constant = (uint16_t)i->imm;
    softgpu_put(t, " ");
    switch (i->row->op) {
    case 0x11:
        softgpu_put_operand(t, &i->dst);
        softgpu_put(t, ", ");
        put_hwreg(t, constant);
        break;
    case 0x12:
        put_hwreg(t, constant);
        softgpu_put(t, ", ");
        softgpu_put_operand(t, &i->dst);
        break;
    case 0x14:
        put_hwreg(t, constant);
        softgpu_put(t, i->src[1].bits <= 64 ? ", %u" : ", 0x%x", (uint32_t)i->src[1].bits);
        break;
    case 0x10:
    case 0x15:
        softgpu_put_operand(t, &i->dst);
        softgpu_put(t, ", %u", constant);
        break;
    default:
        softgpu_put_operand(t, &i->dst);
        softgpu_put(t, ", 0x%x", constant);
    }
}

void softgpu_print_scalar(struct text *t, const struct inst *i) {
    const char *separator = " ";
    if (i->encoding == E_SOPP) {
        print_sopp(t, i);
        return;
    }
    if (i->encoding == E_SOPK) {
        print_sopk(t, i);
        return;
    }
    if (i->encoding == E_SOPC && i->row->op == 0x11) {
        softgpu_put(t, " ");
        softgpu_put_operand(t, &i->src[0]);
        softgpu_put(t, ",");
        put_index_mode(t, i->src[1].enc);
        return;
    }
    const struct operand *const all[] = {&i->dst, &i->src[0], &i->src[1]};
    for (unsigned n = 0; n < 3; n++)
        if (all[n]->kind) {
            softgpu_put(t, "%s", separator);
            softgpu_put_operand(t, all[n]);
            separator = ", ";
        }
}
