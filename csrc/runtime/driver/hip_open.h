/* Finds HIP and opens it. */
#ifndef MGPU_RT_HIP_OPEN_H
#define MGPU_RT_HIP_OPEN_H

#include "driver/hip.h"

/* Finds and opens HIP. If `wanted` (MGPU_RT_HIP) is not empty, HIP is the library with that name.
 * If `wanted` is empty, HIP is the library that rocMLIR shares, or that the process has already
 * mapped. If there is none, HIP is the first usable library of these folders: the folder lib of
 * ROCM_PATH, the loader's folders, /opt/rocm/lib. A usable library has all required functions.
 * Returns false if no library is found; unless `silent` is set, a message on stderr says so once.
 * If the process has then mapped two HIP libraries, a message names the two paths. Several threads
 * may call hip_open at once, because hip_open writes only to *library. */
bool hip_open(struct hip_library *library, const char *wanted, bool silent);

/* Returns true if another library may share its HIP. hip_open then calls a function of that
 * library, so the constructors of all libraries must have run. */
bool hip_is_shared(void);

#endif
