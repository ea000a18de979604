/* Finds HIP and opens it. */
#ifndef MGPU_RT_HIP_OPEN_H
#define MGPU_RT_HIP_OPEN_H

#include "driver/hip.h"

/* Finds and opens HIP. If `wanted` (MGPU_RT_HIP) is not empty, HIP is the library that it names.
 * Otherwise HIP is a library that the process has mapped, else the first of hip_search.h that
 * opens. HIP must have all required functions. Returns false if no library is found; unless
 * `silent`, stderr then lists once which libraries were tried and how to name one. If the process
 * then has two HIP libraries, the message names both. Changes only *library, so several threads may
 * try at once. */
bool hip_open(struct hip_library *library, const char *wanted, bool silent);

/* The functions that stand in for functions that a library lacks. */
extern const struct hip_functions hip_missing;

#endif
