/* Prints messages: stock's line about each failure, and advice once for each cause. */
#include "driver/report.h"
#include "driver/hip.h"
#include "mgpu_rt.h"
#include "mgpu_rt_private.h"
#include "process/lines.h"
#include "proof.h"
#include "telemetry/counters.h"

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

/* The error of the thread's last failure, stored for callers of functions that return nothing. */
static __thread hipError_t thread_error __attribute__((tls_model("initial-exec")));

const char *mgpu_rt_take_error(void) {
    const hipError_t error = thread_error;
    const char *name = error != hipSuccess ? hip.GetErrorName(error) : NULL;
    thread_error = hipSuccess;
    return error == hipSuccess || name ? name : "<unknown>";
}

static unsigned failures; /* of this process */

unsigned mgpu_rt_failures(void) {
    return load_relaxed(&failures);
}

void report_forked(void) {
    failures = 0;
}

/* Records a failure for mgpu_rt_take_error, mgpu_rt_failures and the statistics. */
static void note_failure(hipError_t error) {
    thread_error = error;
    call_fail(error);
    if (!call_now.begun && runtime_counting())
        stats_failure(ABI_COUNT, error);
    fetch_add_relaxed(&failures, 1);
}

void report_failure(const char *expression, hipError_t error, struct advice *advice, ...) {
    note_failure(error);
    const char *name = hip.GetErrorName(error);
    say_line("'%s' failed with '%s'", expression, name ? name : "<unknown>");
    struct advice *told = advice_for(error, advice);
    if (!told || follows(told) || !first_time(told))
        return;
    va_list words;
    va_start(words, advice);
    line_write("mgpu_rt: ", told->text, words);
    va_end(words);
}

void mgpu_rt_report(const char *call, int error) {
    report_failure(call, error, NULL);
}

void report_failure_in(const char *library, const char *expression, const char *reason,
                       hipError_t error, struct advice *advice) {
    note_failure(error);
    say_line("%s '%s' failed with '%s'", library, expression, reason);
    if (advice && !follows(advice) && first_time(advice))
        line_print("%s", advice->text);
}

static void print_once(struct advice *advice, va_list words) {
    (void)follows(advice);
    if (first_time(advice))
        line_write("mgpu_rt: ", advice->text, words);
}

void report_once(struct advice *advice, ...) {
    va_list words;
    va_start(words, advice);
    print_once(advice, words);
    va_end(words);
}

void report_not_made(hipError_t error, struct advice *advice, ...) {
    va_list words;
    note_failure(error);
    va_start(words, advice);
    print_once(advice, words);
    va_end(words);
}

void report_verbose(const char *format, ...) {
    if (!options.verbose_on)
        return;
    va_list words;
    va_start(words, format);
    line_write("mgpu_rt: ", format, words);
    va_end(words);
}
