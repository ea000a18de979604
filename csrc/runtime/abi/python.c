/* Opens libmgpu_rt_python.so, which lies beside this library. */
#include "abi/python.h"
#include "abi/python_plugin.h"
#include "driver/report.h"
#include "mgpu_rt.h"
#include "mgpu_rt_private.h"
#include "process/interpreter.h"
#include "process/mapped.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static const struct python_plugin *plugin;

static void open_python(void) {
    static const struct python_host host = {
        MGPU_RT_VERSION,
        mapped_library,
        mapped_home,
        interpreter_find,
        {(unsigned long)mgpu_rt_native, (unsigned long)mgpu_rt_intercept,
         (unsigned long)mgpu_rt_report, (unsigned long)mgpu_rt_hip_path,
         (unsigned long)mgpu_rt_image_name, (unsigned long)mgpu_rt_event_flags}};
    char path[PATH_MAX];
    python_entry *entry = NULL;
    void *library = mapped_beside("libmgpu_rt_python.so", path, sizeof path)
                        ? dlopen(path, RTLD_NOW | RTLD_LOCAL)
                        : NULL;
    if (library)
        *(void **)&entry = dlsym(library, "mgpu_rt_python");
    if (!entry) {
        report_line("MGPU_RT_RUNTIME: libmgpu_rt_python.so, which lies beside this library, cannot "
                    "be opened: install mgpu_rt again");
        fflush(stdout);
        _exit(1); /* as if the runtime could not be created */
    }
    plugin = entry(&host);
}

static const struct python_plugin *python_get(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, open_python);
    return plugin;
}

void *python_let_go(void) {
    return python_get()->let_go();
}

void python_take_back(void *gil) {
    python_get()->take_back(gil);
}

bool python_create(const char *wanted) {
    return python_get()->create(wanted);
}
