/* Opens libmgpu_rt_python.so, which lies beside this library. */
#include "abi/python_plugin.h"
#include "mgpu_rt.h"
#include "mgpu_rt_private.h"
#include "process/interpreter.h"
#include "process/lines.h"
#include "process/mapped.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static const struct python_plugin *plugin;

/* Finds the functions for Python by name, as other users of the library do: their files are above
 * this one. */
static void find_functions(struct python_host *host) {
    static const char *const names[] = {"mgpu_rt_native",      "mgpu_rt_intercept",
                                        "mgpu_rt_report",      "mgpu_rt_hip_path",
                                        "mgpu_rt_image_place", "mgpu_rt_event_flags"};
    Dl_info own;
    void *library = dladdr(host, &own) ? dlopen(own.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    for (size_t i = 0; library && i < sizeof names / sizeof *names; i++)
        host->functions[i] = (unsigned long)dlsym(library, names[i]);
}

static void open_python(void) {
    static struct python_host host = {
        MGPU_RT_VERSION, mapped_library, mapped_home, interpreter_find, {0}};
    find_functions(&host);
    python_entry *const entry =
        (python_entry *)mapped_plugin("libmgpu_rt_python.so", "mgpu_rt_python");
    if (!entry) {
        line_print("MGPU_RT_RUNTIME: libmgpu_rt_python.so, which lies beside this library, cannot "
                   "be opened: install mgpu_rt again");
        fflush(stdout);
        _exit(1); /* as if the runtime could not be created */
    }
    plugin = entry(&host);
}

const struct python_plugin *python_get(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, open_python);
    return plugin;
}
