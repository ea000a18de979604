#include "early_use.h"
#include "report.h"

/* A report does not count as a wait for the allocation: a real race of its stream may follow. */
void softgpu_check_alloc(uint32_t alloc, uint32_t op, const struct softgpu_clock *clock,
                         uint64_t va) {
    static const char kind[] = "early-use";
    struct softgpu_report report;
    struct softgpu_block block;
    if (!alloc || !op || softgpu_is_over(alloc, clock, SOFTGPU_LIBRARY) ||
        !softgpu_shadow_holds(va, &block))
        return;
    const uint64_t key[] = {(uintptr_t)kind, (uintptr_t)block.made.frames[0]};
    if (!softgpu_report_new(key, sizeof key / sizeof *key))
        return;
    softgpu_report_begin(&report, kind);
    softgpu_report_op(&report, op);
    softgpu_report_number(&report, "allocated_on", softgpu_op_at(alloc)->stream);
    softgpu_report_block(&report, &block);
    softgpu_report_end(&report);
}
