/* The action of each HIP function in record mode: emu_<name>, called with the stub's lock held. */
#ifndef HIPSTUB_CALLS_H
#define HIPSTUB_CALLS_H

#include "../../../csrc/hip_abi.h"

#define HIP_CALL(name, params, args, fast) hipError_t emu_##name params;
#include "functions.def"
#include "graphs.def"
#undef HIP_CALL

/* Ends every module, stream, event and allocation of the thread's device, once the streams are
 * idle. */
void device_reset(void);

/* Returns the calling thread's device. */
int current_device(void);

#endif
