/* Finds HIP's answers to handles and images that it does not know.
 *
 * The runtime caches objects that the program has released. HIP still knows such an object; with
 * stock it would not. So HIP is asked about a handle that it has never handed out. The error to
 * report is then the one of this release, and it is the thread's last error, as after stock's call.
 * Each function here asks so that HIP 5.2.3 to 7.2.4 refuse before they touch anything. NVIDIA's
 * driver keeps no last error, and may touch memory before it checks: it is not asked. */
#ifndef MGPU_RT_REFUSAL_H
#define MGPU_RT_REFUSAL_H

#include "driver/hip.h"

hipError_t refusal_of_stream(void);
hipError_t refusal_of_event(void);
hipError_t refusal_of_module(void);
hipError_t refusal_of_block(void);

/* Refuses an image at this address that HIP would read beyond its end, as HIP refuses bytes that
 * are no image. */
hipError_t refusal_of_image(const void *data);

#endif
