/* Writes the checker's reports: a line of JSON each, in the file that MGPU_RT_CHECK names, or on
 * stderr. `mgpu-rt check` turns reports into text (mgpu_rt/_cli/check). */
#ifndef SOFTGPU_CHECK_REPORT_H
#define SOFTGPU_CHECK_REPORT_H

#include "order.h"
#include "shadow.h"

/* Returns true the first time that it gets a key: each fault is reported once. Returns false after
 * 4,096 faults, too. */
bool softgpu_report_new(const uint64_t *key, unsigned words);

/* A report that is composed field by field and written at once. */
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
/* Returns true the first time that it gets a call's place and another op's. From then on the other
 * op counts as over. */
bool softgpu_report_pair_new(const char *kind, const struct softgpu_place *place, uint32_t other);
/* Writes an op: its kind, its stream, its place. */
void softgpu_report_op(struct softgpu_report *report, uint32_t number);
void softgpu_report_block(struct softgpu_report *report, const struct softgpu_block *block);
void softgpu_report_end(struct softgpu_report *report);

#endif
