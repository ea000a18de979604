/* Prints messages: stock's line about each failure, and advice once for each cause. */
#include "driver/report.h"
#include "atomics.h"
#include "driver/hip.h"
#include "process/exit_status.h"
#include "process/lines.h"
#include "process/options.h"
#include "process/state.h"
#include "proof.h"
#include "telemetry/call.h"
#include "telemetry/counters.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Prints a line as stock does, without a prefix. */
static __attribute__((format(printf, 1, 2))) void say_line(const char *format, ...) {
    va_list words;
    va_start(words, format);
    line_write("", format, words);
    va_end(words);
}

struct advice report_no_device = {
    .text = "HIP finds no GPU here, so nothing runs. Emulate one: `mgpu-rt run --device softgpu -- "
            "PROGRAM`. If the machine has a GPU, `mgpu-rt doctor` says why HIP does not find it",
    .leads_to = NOTHING_RUNS};

static struct advice no_emulated_device = {
    .text = "HIP finds none of the GPUs that MGPU_RT_SOFTGPU names, so nothing runs: softgpu "
            "printed the reason above, or HIP_VISIBLE_DEVICES or ROCR_VISIBLE_DEVICES hides them",
    .leads_to = NOTHING_RUNS};

static struct advice parent_used_the_device = {
    .text = "this process is a fork of a process that has used the GPU, and HIP does not work in "
            "such a child. Fork before the first use of the GPU, or start the child as a new "
            "program (Python: multiprocessing with \"spawn\" or \"forkserver\")",
    .leads_to = NOTHING_RUNS};

static struct advice no_driver = {
    .text = "HIP finds no driver for the GPU, or the driver is too old, so nothing runs: `mgpu-rt "
            "doctor` shows what is missing (for NVIDIA's GPUs: mgpu-rt doctor --device cuda)",
    .leads_to = NOTHING_RUNS};

static unsigned explained; /* bits of enum consequence */

/* ---- the first cause of other failures, printed at the end too ---- */

enum { SCREEN = 24 };              /* lines on a screen: later failures push the cause out */
static const struct advice *cause; /* NULL: no message has named a cause */
static char *cause_line;           /* NULL: not printed yet, or no memory */
static unsigned failures_since;

void report_cause_again(void) {
    const char *said = load_acquire(&cause_line);
    const unsigned failures = load_relaxed(&failures_since);
    if (said && failures > SCREEN)
        fprintf(stderr, "mgpu_rt: the cause of these %u failures: %s", failures,
                said + strlen("mgpu_rt: "));
}

static void explain(const struct advice *advice, va_list words) {
    const struct advice *none = NULL;
    char line[LINE];
    line_compose(line, "mgpu_rt: ", advice->text, words);
    fputs(line, stderr);
    if (advice->leads_to && cas_acq_rel(&cause, &none, advice))
        store_release(&cause_line, strdup(line));
}

/* Returns true if `cause` explains a failure whose advice is `advice`. `advice` is NULL if the
 * failure has no advice. */
static bool is_of_cause(const struct advice *advice) {
    const struct advice *first = load_acquire(&cause);
    return first && ((first->leads_to & NOTHING_RUNS) || advice == first ||
                     (advice && (advice->follows & first->leads_to)));
}

static bool first_time(struct advice *advice) {
    return !exchange_relaxed(&advice->given, true);
}

/* Returns true if an earlier message has explained this failure. Also records the failures that
 * `advice` explains from now on. */
static bool follows(const struct advice *advice) {
    const unsigned before = fetch_or_relaxed(&explained, advice->leads_to);
    return (before & (NOTHING_RUNS | advice->follows)) != 0;
}

/* Returns true if an error of HIP means that there is no device. */
static bool lacks_device(hipError_t error) {
    return error == hipErrorNoDevice || (error == hipErrorInvalidDevice && hip_no_device);
}

/* Returns the advice for the error if every call can return this error; otherwise returns the
 * advice for the call. Advice to emulate a device helps no user who already emulates a device. A
 * call that comes after the driver's end needs no advice, because nothing is wrong with its
 * arguments. */
static struct advice *advice_for(hipError_t error, struct advice *of_call) {
    if (error == hipErrorDeinitialized)
        return NULL;
    if (runtime_forked)
        return &parent_used_the_device;
    if (error == hipErrorInsufficientDriver)
        return &no_driver;
    if (!lacks_device(error))
        return of_call;
    return options_path_variable("MGPU_RT_SOFTGPU") ? &no_emulated_device : &report_no_device;
}

/* The error of the thread's last failure, stored for callers of functions that return nothing
 * (mgpu_rt_take_error). */
static __thread hipError_t thread_error __attribute__((tls_model("initial-exec")));

hipError_t report_take_error(void) {
    const hipError_t error = thread_error;
    thread_error = hipSuccess;
    return error;
}

/* Records a failure for mgpu_rt_take_error, for the statistics and for the exit status. */
static void note_failure(hipError_t error) {
    thread_error = error;
    call_fail(error);
    if (!call_now.begun && runtime_counting())
        stats_failure(ABI_COUNT, error);
    exit_status_fails();
}

void report_failure(const char *expression, hipError_t error, struct advice *advice, ...) {
    note_failure(error);
    const char *name = hip.GetErrorName(error);
    say_line("'%s' failed with '%s'", expression, name ? name : "<unknown>");
    struct advice *told = advice_for(error, advice);
    fetch_add_relaxed(&failures_since, is_of_cause(told));
    if (!told || follows(told) || !first_time(told))
        return;
    va_list words;
    va_start(words, advice);
    explain(told, words);
    va_end(words);
}

void report_failure_in(const char *library, const char *expression, const char *reason,
                       hipError_t error, struct advice *advice) {
    note_failure(error);
    say_line("%s '%s' failed with '%s'", library, expression, reason);
    if (advice && !follows(advice) && first_time(advice))
        line_print("%s", advice->text);
}

void report_once(struct advice *advice, ...) {
    (void)follows(advice);
    if (!first_time(advice))
        return;
    va_list words;
    va_start(words, advice);
    explain(advice, words);
    va_end(words);
}

void report_not_made(hipError_t error, struct advice *advice) {
    note_failure(error);
    report_once(advice);
}

void report_verbose(const char *format, ...) {
    if (!options.verbose_on)
        return;
    va_list words;
    va_start(words, format);
    line_write("mgpu_rt: ", format, words);
    va_end(words);
}
