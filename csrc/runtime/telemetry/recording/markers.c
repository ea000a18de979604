#include "telemetry/recording/markers.h"
#include "process/lines.h"
#include "process/options.h"

#include <dlfcn.h>
#include <stdio.h>

static int (*push)(const char *text);
static int (*pop)(void);
static bool looked;

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
    if (!options.trace_markers_on || looked)
        return;
    looked = true; /* even if no library is found; a forked child inherits `looked` */
    void *library = open_first(RTLD_NOLOAD); /* a profiler's */
    if (!library)
        library = open_first(0);
    if (library) {
        *(void **)&pop = dlsym(library, "roctxRangePop");
        *(void **)&push = pop ? dlsym(library, "roctxRangePushA") : NULL;
    }
    if (!push)
        line_print(LINE_WARNING,
                   "mgpu_rt: MGPU_RT_TRACE=markers: there is no libroctx64.so or "
                   "librocprofiler-sdk-roctx.so: install ROCm's, or add their folder to "
                   "LD_LIBRARY_PATH\n");
}

bool marker_begins(const struct kernel_name *kernel) {
    char text[sizeof(struct kernel_name)];
    if (!push)
        return false;
    const char *between = kernel->module[0] ? "::" : "";
    snprintf(text, sizeof text, "%s%s%s", kernel->module, between, kernel->name);
    push(text);
    return true;
}

void marker_ended(void) {
    pop();
}
