/* The record: every call in order, counts, misuse; and the one lock of record mode. */
#ifndef HIPSTUB_LOG_H
#define HIPSTUB_LOG_H

#include "../../../csrc/hip_abi.h"

#include <stdbool.h>

enum stub_function {
#define HIP_CALL(name, params, args, fast) ID_##name,
#include "functions.def"
#include "graphs.def"
#undef HIP_CALL
    ID_hipDeviceSynchronize,
    ID_hipDeviceReset,
    ID_hipLaunchKernel,
    ID_hipDrvLaunchKernelEx,
    ID_hipGetLastError,
    ID_hipPeekAtLastError,
    STUB_FUNCTIONS
};

/* One argument in the record: a number, an address, or a copy of a text. */
struct stub_value {
    uint64_t bits;
    bool is_text;
};

/* Takes the one lock for all state of record mode. Kernel bodies, copies and delays run without
 * it. */
void stub_lock(void);
void stub_unlock(void);

/* Returns the index of a function by its name, or -1. */
int stub_function_index(const char *name);

/* Records the begin of a call and returns its number, for stub_log_end. names is "(a, b)", the text
 * of the arguments. *fault gets the injected error. The call aborts after teardown. */
size_t stub_log_begin(enum stub_function function, const char *names,
                      const struct stub_value *values, unsigned count, hipError_t *fault);

/* Completes a call's record: its result, and the value written through its first argument if that
 * is the address of a handle or pointer. Sets the thread's last error if the call failed. */
hipError_t stub_log_end(size_t number, hipError_t result, const void *out);

/* Counts a wrong use of HIP and keeps the text (up to 200 of them). Needs the lock. */
void stub_misuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Returns the thread's last error; reads it, or reads and clears it. */
hipError_t stub_last_error(bool clear);

/* Writes the record as JSON; %p in the path is the process id. */
void stub_log_write(const char *path);

#endif
