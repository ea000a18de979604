/* emu_<name> emulates the HIP function <name> in record mode. The caller holds the stub's lock. */
#ifndef HIPSTUB_CALLS_H
#define HIPSTUB_CALLS_H

#include "../../../csrc/hip_abi.h"

#define HIP_CALL(name, params, args, fast) hipError_t emu_##name params;
#include "functions.def"
#include "graphs.def"
#undef HIP_CALL

/* Waits until the streams are idle, then destroys all modules, streams, events and allocations of
 * the thread's device. */
void device_reset(void);

/* Returns the calling thread's device. */
int current_device(void);

#endif
