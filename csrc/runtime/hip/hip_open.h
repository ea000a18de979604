/* Finds HIP and opens it. */
#ifndef MGPU_RT_HIP_OPEN_H
#define MGPU_RT_HIP_OPEN_H

#include "hip/hip.h"

/* Finds and opens HIP: `wanted` (MGPU_RT_HIP) if it is not empty; one that the process has mapped;
 * what hip_search.h finds, the first that can be opened and has what is needed. If none can be had,
 * false, and once on stderr what was tried and how to say where it is, unless `silent`; if the
 * process has two then, that is said too. Changes nothing but *library: several threads may try at
 * once. */
bool hip_open(struct hip_library *library, const char *wanted, bool silent);

/* What answers for functions that a library lacks. */
extern const struct hip_functions hip_missing;

#endif
