/* Finds HIP and opens it. */
#ifndef MGPU_RT_HIP_OPEN_H
#define MGPU_RT_HIP_OPEN_H

#include "driver/hip.h"

/* Finds and opens HIP. The library is `wanted` (MGPU_RT_HIP) if that is not empty, or one that the
 * process has mapped. If there is neither a named HIP nor a mapped one, HIP is the first library of
 * hip_search.h that opens and has all required functions. Returns false if no library is found;
 * unless `silent`, stderr then lists once which libraries were tried and how to name one. If the
 * process then has two HIP libraries, the message names both. Changes only *library, so several
 * threads may try at once. */
bool hip_open(struct hip_library *library, const char *wanted, bool silent);

/* The answers of functions that a library lacks. */
extern const struct hip_functions hip_missing;

#endif
