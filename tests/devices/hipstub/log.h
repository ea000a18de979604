/* The record of all calls in order, the counts of calls and of misuses, and the lock of record
 * mode. */
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

/* One argument in the record: a number, an address, or a copy of a string. */
struct stub_value {
    uint64_t bits;
    bool is_text;
};

/* Acquires the lock of record mode. Kernel bodies, copies and delays run without this lock. */
void stub_lock(void);
void stub_unlock(void);

/* Returns the name of a function, or "unknown". */
const char *stub_function_name(unsigned function);

/* Returns the index of the named function, or -1. */
int stub_function_index(const char *name);

/* Records the start of a call and returns the call's number, for stub_log_end. `names` is the
 * source text of the arguments, such as "(a, b)". Stores the injected error in *fault. Aborts the
 * process if HIP has already been torn down. */
size_t stub_log_begin(enum stub_function function, const char *names,
                      const struct stub_value *values, unsigned count, hipError_t *fault);

/* Completes the record of a call. Stores the call's result, and the handle or pointer that the call
 * returned through the first argument. Sets the thread's last error. */
hipError_t stub_log_end(size_t number, hipError_t result, const void *out);

/* Counts a misuse of HIP, and stores the descriptions of the first 200 misuses. The caller holds
 * the lock. */
void stub_misuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Returns the thread's last error, and clears it if `clear` is set. */
hipError_t stub_last_error(bool clear);

/* Writes the record as JSON; %p in the path stands for the process id. */
void stub_log_write(const char *path);

#endif
