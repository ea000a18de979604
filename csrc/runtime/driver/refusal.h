/* Finds the errors with which HIP refuses unknown handles.
 *
 * The runtime caches objects that the program has released. HIP still knows the cached objects,
 * although with stock HIP would no longer know such objects. So the library asks HIP about a handle
 * that HIP has never handed out. HIP's answer is the error that the installed release reports for
 * such a handle. The query also makes this error the thread's last error, as a call of stock does.
 * Each function of this file makes its query so that HIP 5.2.3 to 7.2.4 refuse the query before
 * they access any memory. NVIDIA's driver keeps no last error, and may access memory before a
 * check, so the library makes no such query to NVIDIA's driver. */
#ifndef MGPU_RT_REFUSAL_H
#define MGPU_RT_REFUSAL_H

#include "driver/hip.h"

hipError_t refusal_of_stream(void);
hipError_t refusal_of_event(void);
hipError_t refusal_of_module(void);
hipError_t refusal_of_block(void);

#endif
