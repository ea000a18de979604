/* Finds HIP and opens it. */
#ifndef MGPU_RT_HIP_OPEN_H
#define MGPU_RT_HIP_OPEN_H

#include "driver/hip.h"

/* Finds and opens HIP. If `wanted` (MGPU_RT_HIP) is not empty, HIP is the library with that name.
 * If `wanted` is empty, HIP is the library that the process has already mapped. If the process has
 * mapped no HIP library, HIP is the first library that hip_search finds and the loader can open.
 * HIP must have all required functions. Returns false if no library is found; unless `silent` is
 * set, stderr then lists once which libraries were tried and how to name one. If the process has
 * then mapped two HIP libraries, a message on stderr names the two paths. Several threads may call
 * hip_open at once, because hip_open writes only to *library. */
bool hip_open(struct hip_library *library, const char *wanted, bool silent);

/* The stand-ins for HIP functions that a library lacks: each stand-in returns hipErrorNotSupported.
 */
extern const struct hip_functions hip_missing;

#endif
