/* Prints messages to the user. */
#ifndef MGPU_RT_REPORT_H
#define MGPU_RT_REPORT_H

#include "likely.h"
#include "mgpu.h"

/* Kinds of failures that follow from an earlier failure. Once the library has explained the earlier
 * failure, the later failures need no advice. */
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

/* Prints the line that stock would print, because tools look for this line. Then prints the advice,
 * unless an earlier call has printed the advice:
 *
 *     'hipFree(ptr)' failed with 'hipErrorInvalidValue'
 *     mgpu_rt: ...
 *
 * The arguments after `advice` are the arguments of the format advice->text. advice may be NULL.
 * The advice is left out if earlier advice explains the failure, or states that nothing runs. */
void report_failure(const char *expression, hipError_t error, struct advice *advice, ...);

/* Reports a failed call to a library other than HIP. The line begins with the library's name.
 * `reason` names the error, because HIP has no names for the errors of other libraries. `error` is
 * HIP's nearest error. */
void report_failure_in(const char *library, const char *expression, const char *reason,
                       hipError_t error, struct advice *advice);

/* The advice for a process without a device; report_failure prints this advice if HIP has reported
 * that there is no device. */
extern struct advice report_no_device;

/* Prints advice once, without stock's line, if a call succeeds but does not have the effect that
 * the program expects. */
void report_once(struct advice *advice, ...);

/* Prints advice once, without stock's line, if the library skips a call, or HIP cuts its arguments.
 * The call counts as failed. */
void report_not_made(hipError_t error, struct advice *advice, ...);

/* Separates a forked child from its parent's failures. */
void report_forked(void);

/* Prints a line as line_print does, but only if MGPU_RT_VERBOSE is set. */
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
