/* Prints messages to the user. */
#ifndef MGPU_RT_REPORT_H
#define MGPU_RT_REPORT_H

#include "likely.h"
#include "mgpu.h"

/* Failures that follow from others: once the first was explained, the later ones need no advice. */
enum consequence {
    NOTHING_RUNS = 1,
    NULL_MODULE = 2,
    NULL_FUNCTION = 4,
};

/* A cause of failure that is explained only once. */
struct advice {
    const char *text; /* printf format */
    bool given;
    unsigned leads_to, follows; /* bits of enum consequence */
};

/* Prints stock's line, which tools look for, and then the advice unless it was given before:
 *
 *     'hipFree(ptr)' failed with 'hipErrorInvalidValue'
 *     mgpu_rt: ...
 *
 * The further arguments fill the format advice->text. advice may be NULL. The advice is left out if
 * earlier advice explains the failure, or has said that nothing runs. */
void report_failure(const char *expression, hipError_t error, struct advice *advice, ...);

/* Reports a failed call of a library above HIP, with that library's name in place of HIP's; HIP has
 * no names for that library's errors. `error` is HIP's nearest error. */
void report_failure_in(const char *library, const char *expression, const char *reason,
                       hipError_t error, struct advice *advice);

/* Returns and clears the error of the calling thread's last failure; hipSuccess if none is left. */
hipError_t report_take_error(void);

/* The advice that there is no device: report_failure uses it if HIP has said so. */
extern struct advice report_no_device;

/* Prints only the advice, once, for a call that works, but not as the program expects. */
void report_once(struct advice *advice, ...);

/* Prints only the advice, once, for a call that was not made and counts as failed. */
void report_not_made(hipError_t error, struct advice *advice);

/* Repeats at the end why nothing has run, if many failures were reported after the cause. */
void report_cause_again(void);

/* Prints one line on stderr, prefixed. */
void report_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints a prefixed line only if MGPU_RT_VERBOSE is set. */
void report_verbose(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* REPORT(expression, call, advice, arguments...): calls HIP as stock would, and reports a failure
 * as stock would. */
#define REPORT(expression, call, ...)                                                              \
    do {                                                                                           \
        const hipError_t error_ = (call);                                                          \
        if (UNLIKELY(error_ != hipSuccess))                                                        \
            report_failure(expression, error_, __VA_ARGS__);                                       \
    } while (0)

#endif
