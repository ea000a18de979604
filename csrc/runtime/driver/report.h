/* The messages to the user. */
#ifndef MGPU_RT_REPORT_H
#define MGPU_RT_REPORT_H

#include "likely.h"
#include "mgpu.h"

/* Failures that follow from others: where the first was explained, the later ones need no
 * advice. */
enum consequence {
    NOTHING_RUNS = 1,
    NULL_MODULE = 2,
    NULL_FUNCTION = 4,
};

/* A cause of failure that is explained once. */
struct advice {
    const char *text; /* printf format */
    bool given;
    unsigned leads_to, follows; /* of enum consequence */
};

/* Prints stock's line, which tools look for, and then the advice if it was not given yet:
 *
 *     'hipFree(ptr)' failed with 'hipErrorInvalidValue'
 *     mgpu_rt: ...
 *
 * The words are passed to advice->text. advice may be NULL. No advice is given after another that
 * explains it, nor after one after which nothing runs. */
void report_failure(const char *expression, hipError_t error, struct advice *advice, ...);

/* Reports a failed call of a library over HIP, with that library's name where stock's line has
 * HIP's; HIP has no name for its errors. `error` is HIP's nearest. */
void report_failure_in(const char *library, const char *expression, const char *reason,
                       hipError_t error, struct advice *advice);

/* Returns and clears the error of the calling thread's last failure; hipSuccess if none is left. */
hipError_t report_take_error(void);

/* The advice that there is no device: report_failure takes it by itself if HIP has said so. */
extern struct advice report_no_device;

/* Gives only the advice, once, for a call that works, but not as the program expects. */
void report_once(struct advice *advice, ...);

/* Gives only the advice, once, for a call that was not made, which counts as failed. */
void report_not_made(hipError_t error, struct advice *advice);

/* Repeats at the end why nothing has run, if many failures have been reported since. */
void report_cause_again(void);

/* Prints one line on stderr, prefixed. */
void report_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints such a line only if MGPU_RT_VERBOSE is set. */
void report_verbose(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* REPORT(expression, call, advice, words...): calls HIP as stock would, and reports a failure as
 * stock would. */
#define REPORT(expression, call, ...)                                                              \
    do {                                                                                           \
        const hipError_t error_ = (call);                                                          \
        if (UNLIKELY(error_ != hipSuccess))                                                        \
            report_failure(expression, error_, __VA_ARGS__);                                       \
    } while (0)

#endif
