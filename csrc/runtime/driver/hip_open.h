/* Finds HIP and opens it. */
#ifndef MGPU_RT_HIP_OPEN_H
#define MGPU_RT_HIP_OPEN_H

#include "driver/hip.h"

/* Finds and opens HIP. The library is `wanted` (MGPU_RT_HIP) if that is not empty, or one that the
 * process has mapped. If there is neither, it is the first of hip_search.h's that can be opened and
 * has all that is needed. Returns false if there is none; stderr then tells once which were tried
 * and how to name one, unless `silent`. If the process then has two, the message names both.
 * Changes only *library: several threads may try at once. */
bool hip_open(struct hip_library *library, const char *wanted, bool silent);

/* Answers for functions that a library lacks. */
extern const struct hip_functions hip_missing;

#endif
