/* Implements SOPP: branches, program end, barriers, and hints that have no effect in emulation. */
#include "exec.h"
#include "families.h"
#include "operand.h"

static void branch(struct wave *w, const struct inst *i) {
    if (i->target)
        w->next = i->target;
    else
        softgpu_wave_jump(w, i, w->code->va + w->next->offset + (uint64_t)(4 * (int64_t)i->imm));
}

#define CBRANCH(name, condition)                                                                   \
    static void name(struct wave *w, const struct inst *i) {                                       \
        if (condition)                                                                             \
            branch(w, i);                                                                          \
    }

CBRANCH(cbranch_scc0, !w->scc)
CBRANCH(cbranch_scc1, w->scc)
CBRANCH(cbranch_vccz, !wave_vcc(w))
CBRANCH(cbranch_vccnz, wave_vcc(w))
CBRANCH(cbranch_execz, !wave_exec(w))
CBRANCH(cbranch_execnz, wave_exec(w))

static void set_gpr_idx_off(struct wave *w, const struct inst *i) {
    (void)i;
    w->mode &= ~(uint32_t)MODE_GPR_IDX;
}

static void set_gpr_idx_mode(struct wave *w, const struct inst *i) {
    w->s[SGPR_M0] = (w->s[SGPR_M0] & ~0xf000u) | ((uint32_t)i->imm & 15) << 12;
}

static void endpgm(struct wave *w, const struct inst *i) {
    (void)i;
    w->stop = ENDED;
}

static void barrier(struct wave *w, const struct inst *i) {
    CHECK_LANES_AT_BARRIER(w, i);
    w->stop = AT_BARRIER;
}

/* Ends the wave's turn, because a sleeping wave usually waits for another wave. */
static void yield(struct wave *w, const struct inst *i) {
    (void)i;
    w->stop = YIELDED;
}

static void sethalt(struct wave *w, const struct inst *i) {
    if (i->imm & 1)
        softgpu_wave_fault(w, i, -1, "the wave halts itself and nothing could resume it");
}

static void sendmsg(struct wave *w, const struct inst *i) {
    enum { MSG_INTERRUPT = 1 };
    if ((i->imm & 15) == MSG_INTERRUPT)
        softgpu_interrupt(w->s[SGPR_M0]);
    else
        softgpu_wave_fault(w, i, -1, "message %d is not emulated", i->imm & 15);
}

static void trap(struct wave *w, const struct inst *i) {
    enum { TRAP_ABORT = 2, TRAP_DEBUG = 3 };
    if ((i->imm & 0xff) == TRAP_ABORT)
        softgpu_wave_fault(w, i, -1,
                           "the kernel called trap (abort, a failed assertion, or code "
                           "that must not be reached)");
    else if ((i->imm & 0xff) != TRAP_DEBUG) /* without a debugger a breakpoint does nothing */
        softgpu_wave_fault(w, i, -1, "trap %d has no handler", i->imm & 0xff);
}

/* Drops an interrupt's message, in tests that run without a thunk. The thunk overrides
 * softgpu_interrupt, and raises the event whose number is in the message. */
__attribute__((weak)) void softgpu_interrupt(uint32_t event) {
    (void)event;
}

static const struct row rows[] = {
#define ROW(op_, name_, fn_) {.op = op_, .name = name_, .targets = ALL, .fn.step = fn_},
#include "sopp.def"
#undef ROW
};

const struct rows softgpu_rows_sopp = FAMILY(rows);
