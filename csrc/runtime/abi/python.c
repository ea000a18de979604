/* Opens libmgpu_rt_python.so, which lies beside this library. */
#include "abi/python_plugin.h"
#include "process/lines.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static const struct python_plugin *plugin;

static void open_python(void) {
    static struct python_host host = {MGPU_RT_VERSION, "", mapped_library, mapped_home,
                                      interpreter_find};
    Dl_info own;
    if (dladdr(&host, &own))
        host.library = own.dli_fname;
    plugin = mapped_plugin("libmgpu_rt_python.so", "mgpu_rt_python", &host);
    if (!plugin) {
        line_print("MGPU_RT_RUNTIME: libmgpu_rt_python.so, which lies beside this library, cannot "
                   "be opened: install mgpu_rt again");
        fflush(stdout);
        _exit(1); /* as if the runtime could not be created */
    }
}

const struct python_plugin *python_get(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, open_python);
    return plugin;
}
