/* What is kept of a call beside its count and its time, and the files where it is kept. */
#ifndef MGPU_RT_RECORDER_H
#define MGPU_RT_RECORDER_H

#include "base/abi.h"

#include <stdbool.h>
#include <stdint.h>

/* A call of the program; what its arguments say is in call_details.h. */
struct call {
    enum abi_index function;
    uint64_t begin;
    bool in_stream;
    hipStream_t stream;
    const void *image, *kernel;
    hipModule_t module;
    const char *name;
    const void *to, *from;
    uint64_t bytes;
};

/* A call begins, which is counted then. */
void recorder_begins(struct call *call);
/* It has ended. result: what it returns; NULL if nothing. */
void recorder_ended(const struct call *call, const void *result);

/* Opens the files that MGPU_RT_STATS and MGPU_RT_TRACE name. At the first call of a process, under
 * start_lock. */
void recorder_open(bool forked);
/* A child of fork: what was counted is the parent's. */
void recorder_leave(void);
/* The process ends: writes the table and the files. Once. */
void recorder_close(void);

#endif
