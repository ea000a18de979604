#include "driver/report.h"
#include "process/options.h"
#include "telemetry/recording/recorder.h"

#include <dlfcn.h>

typedef int push_function(const char *text);
typedef int pop_function(void);
static push_function *push; /* NULL: the library records no ranges */
static pop_function *pop;   /* set before `push` */

static struct advice no_library = {
    .text = "MGPU_RT_TRACE=markers: there is no libroctx64.so or librocprofiler-sdk-roctx.so: "
            "install ROCm's, or add their folder to LD_LIBRARY_PATH"};

/* A profiler loads one of these libraries. ROCm contains both libraries; librocprofiler-sdk-roctx
 * is the newer library. */
static const char *const names[] = {
    "librocprofiler-sdk-roctx.so.1",
    "librocprofiler-sdk-roctx.so.0",
    "librocprofiler-sdk-roctx.so",
    "libroctx64.so.4",
    "libroctx64.so",
    "/opt/rocm/lib/librocprofiler-sdk-roctx.so",
    "/opt/rocm/lib/libroctx64.so",
};

static void *open_first(int mode) {
    void *library = NULL;
    for (size_t i = 0; !library && i < sizeof names / sizeof *names; i++)
        library = dlopen(names[i], RTLD_LAZY | RTLD_LOCAL | mode);
    return library;
}

void markers_open(void) {
    if (!options.trace_markers_on)
        return;
    push_function *found = NULL;
    pop_function *end = NULL;
    void *library = open_first(RTLD_NOLOAD); /* a profiler's */
    if (!library)
        library = open_first(0);
    if (library) {
        *(void **)&end = dlsym(library, "roctxRangePop");
        *(void **)&found = end ? dlsym(library, "roctxRangePushA") : NULL;
    }
    store_relaxed(&pop, end);
    store_release(&push, found);
    if (!found)
        report_once(&no_library);
}

bool marker_begins(const char *name) {
    push_function *begin = load_acquire(&push);
    if (begin)
        begin(name);
    return begin;
}

void marker_ended(void) {
    pop_function *end = load_relaxed(&pop);
    end();
}
