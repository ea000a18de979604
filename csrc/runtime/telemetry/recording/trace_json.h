/* A trace as Chrome's trace events, for ui.perfetto.dev. */
#ifndef MGPU_RT_TRACE_JSON_H
#define MGPU_RT_TRACE_JSON_H

#include "telemetry/trace.h"

#include <stddef.h>
#include <stdio.h>

struct trace_kept {
    size_t events, lost;
};

/* Prints the trace. ended: the way in which the process ended. */
struct trace_kept trace_print(FILE *out, const struct trace *trace, const char *ended);

#endif
