/* Writes each report of the checker as a line of JSON. MGPU_RT_CHECK names the file; without
 * MGPU_RT_CHECK, reports go to stderr. `mgpu-rt check` turns reports into text
 * (mgpu_rt/_cli/check). */
#ifndef SOFTGPU_CHECK_REPORT_H
#define SOFTGPU_CHECK_REPORT_H

#include "order.h"
#include "shadow.h"

/* Returns true if no earlier call had this key, so that each fault is reported once. Always returns
 * false after 4,096 faults. */
bool softgpu_report_new(const uint64_t *key, unsigned words);

/* A report that is composed field by field and written by one call. */
struct softgpu_report {
    char text[32768];
    unsigned used;
};

void softgpu_report_begin(struct softgpu_report *report, const char *kind);
void softgpu_report_text(struct softgpu_report *report, const char *name, const char *value);
void softgpu_report_number(struct softgpu_report *report, const char *name, uint64_t value);
void softgpu_report_place(struct softgpu_report *report, const char *name,
                          const struct softgpu_place *place);
/* Opens or closes an object within the report. */
void softgpu_report_open(struct softgpu_report *report, const char *name);
void softgpu_report_close(struct softgpu_report *report);
/* Returns true if no earlier fault of this kind had the same two places: `place` and the place of
 * the op `other`. From the report on, the op `other` counts as awaited, as
 * softgpu_order_reported says. */
bool softgpu_report_pair_new(const char *kind, const struct softgpu_place *place, uint32_t other,
                             enum softgpu_waits waits);
/* Writes an op's kind, stream and place. */
void softgpu_report_op(struct softgpu_report *report, uint32_t number);
void softgpu_report_block(struct softgpu_report *report, const struct softgpu_block *block);
void softgpu_report_end(struct softgpu_report *report);

#endif
