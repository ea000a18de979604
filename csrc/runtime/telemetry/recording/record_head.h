/* The head of a recording: it describes the recording, so that a reader of any release can read it.
 *
 * A recording is a struct counts, which contains the head, and with a trace a struct trace. The
 * head names each field of both structs, with its place in the recording. Texts follow: the names
 * of functions, caches and errors. mgpu_rt/_record.py reads a recording. */
#ifndef MGPU_RT_RECORD_HEAD_H
#define MGPU_RT_RECORD_HEAD_H

#include "telemetry/counters.h"

#include <stdint.h>

/* Writes the head of a recording of `size` bytes to `out`. */
void record_head(char out[RECORD_HEAD], uint64_t size);

#endif
