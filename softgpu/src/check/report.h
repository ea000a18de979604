/* Reports of the checker: a line of JSON each, in the file that MGPU_RT_CHECK names, else on
 * stderr. `mgpu-rt check` makes text of them (mgpu_rt/_cli/check). */
#ifndef SOFTGPU_CHECK_REPORT_H
#define SOFTGPU_CHECK_REPORT_H

#include "order.h"
#include "shadow.h"

/* Returns true the first time that this key is given: each fault is reported once. False also after
 * 4,096 faults. */
bool softgpu_report_new(const uint64_t *key, unsigned words);

/* A report that is written field by field, and at its end in one write. */
struct softgpu_report {
    char text[32768];
    unsigned used;
};

void softgpu_report_begin(struct softgpu_report *report, const char *kind);
void softgpu_report_text(struct softgpu_report *report, const char *name, const char *value);
void softgpu_report_number(struct softgpu_report *report, const char *name, uint64_t value);
void softgpu_report_place(struct softgpu_report *report, const char *name,
                          const struct softgpu_place *place);
/* Opens an object within the report, and closes it. */
void softgpu_report_open(struct softgpu_report *report, const char *name);
void softgpu_report_close(struct softgpu_report *report);
/* Returns true the first time that a call at a place and an op of another are named so. From then
 * on the other side is over. */
bool softgpu_report_pair_new(const char *kind, const struct softgpu_place *place, uint32_t other);
/* Returns an op: what it is, its stream, its place. */
void softgpu_report_op(struct softgpu_report *report, uint32_t number);
void softgpu_report_block(struct softgpu_report *report, const struct softgpu_block *block);
void softgpu_report_end(struct softgpu_report *report);

#endif
