/* Messages: stock's line on each failure, what to do about it once per cause. */
#include "runtime.h"

#include <stdarg.h>
#include <stdio.h>

/* One write each, so that lines of several threads do not mix. */
static void print_advice(const struct advice *advice, va_list words) {
    char text[1024];
    vsnprintf(text, sizeof text, advice->text, words);
    fprintf(stderr, "mgpu_rt: %s\n", text);
}

struct advice report_no_device = {
    .text =
        "HIP finds no GPU here, so nothing runs. On an emulated one: `mgpu-rt run --device softgpu "
        "-- PROGRAM`; if there is a GPU, `mgpu-rt doctor` says what is in the way",
    .leads_to = NOTHING_RUNS};

static unsigned explained; /* of enum consequence */

static bool first_time(struct advice *advice) {
    return !__atomic_exchange_n(&advice->given, true, __ATOMIC_RELAXED);
}

/* True if nothing is left to say: what it follows from was said before. */
static bool follows(const struct advice *advice) {
    const unsigned before = __atomic_fetch_or(&explained, advice->leads_to, __ATOMIC_RELAXED);
    return (before & (NOTHING_RUNS | advice->follows)) != 0;
}

/* AMD's HIP answers this for every call where there is no device. */
static bool lacks_device(hipError_t error) {
    return error == hipErrorNoDevice || (error == hipErrorInvalidDevice && hip_no_device);
}

void report_failure(const char *expression, hipError_t error, struct advice *advice, ...) {
    const char *name = hip.GetErrorName(error);
    fprintf(stderr, "'%s' failed with '%s'\n", expression, name ? name : "<unknown>");
    struct advice *told = lacks_device(error) ? &report_no_device : advice;
    if (!told || follows(told) || !first_time(told))
        return;
    va_list words;
    va_start(words, advice);
    print_advice(told, words);
    va_end(words);
}

void report_once(struct advice *advice, ...) {
    (void)follows(advice);
    if (!first_time(advice))
        return;
    va_list words;
    va_start(words, advice);
    print_advice(advice, words);
    va_end(words);
}

void report_verbose(const char *format, ...) {
    if (!options.verbose_on)
        return;
    char text[1024];
    va_list words;
    va_start(words, format);
    vsnprintf(text, sizeof text, format, words);
    va_end(words);
    fprintf(stderr, "mgpu_rt: %s\n", text);
}
