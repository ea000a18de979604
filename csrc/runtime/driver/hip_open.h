/* Finds HIP and opens it. */
#ifndef MGPU_RT_HIP_OPEN_H
#define MGPU_RT_HIP_OPEN_H

#include "driver/hip.h"

/* Finds and opens HIP. If `wanted` (MGPU_RT_HIP) is not empty, HIP is the library with that name.
 * Otherwise HIP is the library that the process has already mapped. If there is no such library,
 * HIP is the first library of hip_search.h that can be opened. HIP must have all required
 * functions. Returns false if no library is found; unless `silent` is set, stderr then lists once
 * which libraries were tried and how to name one. If the process then has two HIP libraries, the
 * message names both. Changes only *library, so several threads may try at once. */
bool hip_open(struct hip_library *library, const char *wanted, bool silent);

/* For each function of HIP, the stand-in that returns an error if a library lacks the function. */
extern const struct hip_functions hip_missing;

#endif
