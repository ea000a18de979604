/* The sides of a report that the program's ops are. */
#ifndef SOFTGPU_CHECK_ACCESS_H
#define SOFTGPU_CHECK_ACCESS_H

#include "report.h"

/* Writes an op as the other side of a report. `pc`: of its instruction; 0: unknown. `access`: what
 * the op does there, or NULL. */
void softgpu_report_other(struct softgpu_report *report, uint32_t number, uint64_t pc,
                          const char *access);

#endif
