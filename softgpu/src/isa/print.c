/* Disassembles an instruction in llvm-objdump's syntax. Fault messages contain the text, and tests
 * compare the text with llvm-objdump's output. This file prints mnemonics; the files print_*.c
 * print operands. */
#include "print.h"

#include "families.h"

static const char *suffix(const struct inst *i) {
    bool short_form = i->encoding == E_VOP1 || i->encoding == E_VOP2 || i->encoding == E_VOPC;
    if (!short_form)
        return "";
    if (i->e64)
        return i->row->dst ? "_e64" : "";
    if (i->sdwa || i->dpp)
        return i->sdwa ? "_sdwa" : "_dpp";
    bool packed = !strncmp(i->row->name, "v_pk_", 5);
    return (i->row->flags & NOE64 && !packed) || !i->row->dst ? "" : "_e32";
}

void softgpu_print(enum target_mask target, const struct inst *i, uint64_t pc, char *text,
                   size_t size) {
    struct text t = {text, size, target};
    (void)pc;
    text[0] = 0;
    if (!i->row)
        return;
    softgpu_put(&t, "%s%s", i->row->name, suffix(i));
    switch (i->encoding) {
    case E_SOP1:
    case E_SOP2:
    case E_SOPK:
    case E_SOPC:
    case E_SOPP:
        softgpu_print_scalar(&t, i);
        break;
    case E_SMEM:
    case E_DS:
    case E_FLAT:
    case E_GLOBAL:
    case E_SCRATCH:
    case E_MUBUF:
        softgpu_print_memory(&t, i);
        break;
    case E_MIMG:
        softgpu_print_mimg(&t, i);
        break;
    default:
        softgpu_print_valu(&t, i);
    }
}
