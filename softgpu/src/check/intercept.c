#include "calls.h"
#include "foreign.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

static int (*intercept)(const char *, softgpu_function);
static softgpu_function (*find)(const char *);

/* A program that opened HIP itself may have looked up HIP's wait functions already; the checker
 * misses such waits. */
static void report_begun(void) {
    struct softgpu_report report;
    if (softgpu_foreign_watch())
        softgpu_order_lost();
    softgpu_report_begin(&report, "begun");
    softgpu_report_end(&report);
}

struct softgpu_place softgpu_call_begins(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, report_begun);
    softgpu_foreign_watch();
    return softgpu_this_place();
}

static void report_living(const char *what, const struct softgpu_object *object) {
    softgpu_report_object("never-destroyed", "", what, object, &object->made);
}

/* Runs at process exit, while HIP still works. */
static void at_end(void) {
    softgpu_check_copies();
    softgpu_each_living(report_living);
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
 * program's start or first call. On other devices `mgpu-rt check` preloads this library. On every
 * device, this library is thus loaded before the first call returns. */
__attribute__((constructor)) static void stand_before(void) {
    *(void **)&find = dlsym(RTLD_DEFAULT, "mgpu_rt_native");
    *(void **)&intercept = dlsym(RTLD_DEFAULT, "mgpu_rt_intercept");
    if (!find || !intercept)
        return;
    override_all(softgpu_memory_calls);
    override_all(softgpu_stream_calls);
    intercept("end", at_end);
    softgpu_foreign_watch();
}
