/* Graphs of others: how calls behave on an external stream that the program captures
 * (torch.cuda.graph, CuPy, hipStreamBeginCapture).
 *
 * HIP reports whether a stream captures; the library asks only about external streams. The recorded
 * calls run later and repeatedly, without a call to this library. So no other caller gets a block
 * that the recorded calls use. During a capture, the library neither waits nor makes a query to HIP
 * that would end the capture. */
#ifndef MGPU_RT_GRAPH_CAPTURE_H
#define MGPU_RT_GRAPH_CAPTURE_H

#include "mgpu.h"
#include "mgpu_rt.h"

/* For each function of the ABI, the function that answers calls while a thread uses an external
 * stream. NULL: the usual implementation answers the calls. */
extern const mgpu_rt_function capture_calls[ABI_COUNT];

/* Returns true if the calling thread's external stream is being captured. capture_on_stream returns
 * true if the given stream is being captured and is the external stream of any thread. */
bool capture_on_thread(void);
bool capture_on_stream(hipStream_t handle);

#endif
