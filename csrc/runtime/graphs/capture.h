/* Graphs of others: what calls do on an external stream that the program captures
 * (torch.cuda.graph, CuPy, hipStreamBeginCapture).
 *
 * HIP tells whether a stream captures, and is asked only about external streams. The recorded calls
 * run later, and often, while no call is made to this library. So from then on no other caller gets
 * a block that is part of the graph. The calls wait for nothing, and ask HIP nothing that would end
 * the capture. */
#ifndef MGPU_RT_GRAPH_CAPTURE_H
#define MGPU_RT_GRAPH_CAPTURE_H

#include "mgpu.h"
#include "mgpu_rt.h"

/* By function: the one that answers it while a thread uses an external stream; NULL: its
 * implementation. */
extern const mgpu_rt_function capture_calls[ABI_COUNT];

/* Returns whether the calling thread's external stream is being captured. The second function
 * answers for this stream, if it is a thread's external stream. */
bool capture_on_thread(void);
bool capture_on_stream(hipStream_t handle);

#endif
