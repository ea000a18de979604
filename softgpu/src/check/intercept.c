#include "calls.h"
#include "foreign.h"
#include "host_writes.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

static int (*intercept)(const char *, softgpu_function);
static softgpu_function (*find)(const char *);
static unsigned (*failures)(void);
bool (*softgpu_host_block_at)(uint64_t address, struct softgpu_host_block *found);

/* A program that opened HIP itself may already hold the addresses of HIP's wait functions. The
 * checker misses waits through these addresses. */
static void report_begun(void) {
    struct softgpu_report report;
    if (softgpu_foreign_watch())
        softgpu_order_lost();
    softgpu_report_begin(&report, "begun");
    softgpu_report_end(&report);
}

/* Returns how many library calls have failed since the previous call of this function. */
static unsigned new_failures(void) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static unsigned known;
    pthread_mutex_lock(&lock);
    unsigned before = known;
    known = failures ? failures() : 0;
    unsigned count = known - before;
    pthread_mutex_unlock(&lock);
    return count;
}

/* Reports failed calls, whose work was not checked. At each call of the program, the checker
 * reports the earlier failures, because a signal may end the program. The destructor reports
 * failures that happen after at_end, because programs unload modules in destructors. */
__attribute__((destructor)) static void report_failures(void) {
    struct softgpu_report report;
    unsigned count = new_failures();
    if (!count)
        return;
    softgpu_report_begin(&report, "failed");
    softgpu_report_number(&report, "calls", count);
    softgpu_report_end(&report);
}

struct softgpu_place softgpu_call_begins(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, report_begun);
    softgpu_foreign_watch();
    report_failures();
    return softgpu_this_place();
}

/* ---- streams and events that are never destroyed ---- */

enum { MOST_PLACES = 4096 };

/* Holds the number of living objects that one place has created, the first of these objects, and
 * the number of the last. */
static struct living {
    const char *what;
    unsigned count, last;
    struct softgpu_object first;
} living[MOST_PLACES];
static unsigned places;

static bool is_of_place(const struct living *of, const char *what,
                        const struct softgpu_object *object) {
    return of->what == what && of->first.made.frames[0] == object->made.frames[0];
}

static void count_living(const char *what, const struct softgpu_object *object) {
    unsigned n = 0;
    while (n < places && !is_of_place(&living[n], what, object))
        n++;
    if (n == MOST_PLACES)
        return;
    if (n == places)
        living[places++] = (struct living){.what = what, .first = *object};
    living[n].count++;
    if (object->number > living[n].last)
        living[n].last = object->number;
    if (object->number < living[n].first.number)
        living[n].first = *object;
}

static void report_living(const struct living *of) {
    struct softgpu_report report;
    softgpu_report_begin(&report, "never-destroyed");
    softgpu_report_place(&report, "place", &of->first.made);
    softgpu_report_text(&report, "object", of->what);
    softgpu_report_number(&report, "number", of->first.number);
    softgpu_report_number(&report, "count", of->count);
    softgpu_report_number(&report, "last", of->last);
    softgpu_report_end(&report);
}

/* Runs at process exit, while HIP still works. The report "ended" is missing if a signal or _exit
 * has ended the program without these checks. */
static void at_end(void) {
    struct softgpu_report report;
    softgpu_check_host_writes();
    softgpu_each_living(count_living);
    for (unsigned n = 0; n < places; n++)
        report_living(&living[n]);
    softgpu_report_begin(&report, "ended");
    softgpu_report_end(&report);
}

static void override_all(const struct softgpu_call *call) {
    for (; call->name; call++) {
        softgpu_function found = find(call->name);
        if (!found)
            continue;
        memcpy(call->native, &found, sizeof found);
        intercept(call->name, call->instead);
    }
}

/* On the emulated device, HIP loads this library when the mgpu_rt library opens HIP, at the
 * program's start or first call. On other devices `mgpu-rt check` preloads this library. So on
 * every device, this library is loaded before the first call returns. */
__attribute__((constructor)) static void stand_before(void) {
    *(void **)&find = dlsym(RTLD_DEFAULT, "mgpu_rt_native");
    *(void **)&intercept = dlsym(RTLD_DEFAULT, "mgpu_rt_intercept");
    *(void **)&failures = dlsym(RTLD_DEFAULT, "mgpu_rt_failures");
    *(void **)&softgpu_host_block_at = dlsym(RTLD_DEFAULT, "softgpu_find_host_block");
    if (!find || !intercept)
        return;
    override_all(softgpu_memory_calls);
    override_all(softgpu_stream_calls);
    intercept("end", at_end);
    softgpu_foreign_watch();
}
