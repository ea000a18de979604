/* Adds ops of the program to reports. */
#ifndef SOFTGPU_CHECK_ACCESS_H
#define SOFTGPU_CHECK_ACCESS_H

#include "report.h"

/* Writes the op that conflicts with the reported access. `pc`: the address of the op's instruction;
 * 0: unknown. `access`: the kind of access that the op made, or NULL. */
void softgpu_report_other(struct softgpu_report *report, uint32_t number, uint64_t pc,
                          const char *access);

#endif
