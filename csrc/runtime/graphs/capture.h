/* Graphs of others: what calls do on an external stream that the program captures
 * (torch.cuda.graph, CuPy, hipStreamBeginCapture).
 *
 * HIP's word says that a stream captures; only for external streams is it asked. The recorded calls
 * run later, and again and again, when nobody calls this library. So a block that is part of it is
 * nobody else's from then on. Nothing is waited for, and nothing is asked that would end the
 * capture. */
#ifndef MGPU_RT_GRAPH_CAPTURE_H
#define MGPU_RT_GRAPH_CAPTURE_H

#include "mgpu.h"
#include "mgpu_rt.h"

/* By function: what answers it while a thread uses an external stream; NULL: its implementation. */
extern const mgpu_rt_function capture_calls[ABI_COUNT];

/* Returns whether the calling thread's external stream is being captured. The other function
 * answers for this stream, if it is a thread's external stream. */
bool capture_on_thread(void);
bool capture_on_stream(hipStream_t handle);

#endif
