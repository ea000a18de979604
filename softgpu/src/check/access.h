/* Writes the sides of a report that are ops of the program. */
#ifndef SOFTGPU_CHECK_ACCESS_H
#define SOFTGPU_CHECK_ACCESS_H

#include "report.h"

/* Writes an op as the other side of a report. `pc`: the address of the instruction; 0: unknown.
 * `access`: the op's access there, or NULL. */
void softgpu_report_other(struct softgpu_report *report, uint32_t number, uint64_t pc,
                          const char *access);

#endif
