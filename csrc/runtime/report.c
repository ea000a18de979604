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

static bool first_time(struct advice *advice) {
    return !__atomic_exchange_n(&advice->given, true, __ATOMIC_RELAXED);
}

void report_failure(const char *expression, hipError_t error, struct advice *advice, ...) {
    const char *name = hip.GetErrorName(error);
    fprintf(stderr, "'%s' failed with '%s'\n", expression, name ? name : "<unknown>");
    if (!advice || !first_time(advice))
        return;
    va_list words;
    va_start(words, advice);
    print_advice(advice, words);
    va_end(words);
}

void report_once(struct advice *advice, ...) {
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
