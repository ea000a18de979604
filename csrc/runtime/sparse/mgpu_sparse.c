/* Forwards the functions for sparse matrices to libmgpu_rt_sparse.so, which the first of these
 * calls opens. */
#include "process/mapped.h"
#include "sparse/plugin.h"
#include "streams/mgpu_stream.h"

static struct advice absent = {
    .text = "libmgpu_rt_sparse.so, which lies beside this library, cannot be opened, so nothing is "
            "computed with sparse matrices: install mgpu_rt again"};

static const struct sparse_plugin *plugin; /* NULL: not opened, or absent */

static bool begin_sparse_work(hipStream_t stream, const char *expression, struct stream **known) {
    if (!stream_usable(thread_get(), stream, known, expression))
        return false;
    lazy_end(); /* the kernels of hipSPARSE or cuSPARSE are unknown */
    return true;
}

static void end_sparse_work(struct stream *known) {
    stream_launched(known);
}

static int current_device(void) {
    return hip_current_device();
}

static bool caches_are_on(void) {
    return caches_on() && device_has_caches(hip_current_device());
}

static void open_plugin(void) {
    static struct sparse_host host = {.tables_lock = &tables_lock,
                                      .report_once = report_once,
                                      .report_verbose = report_verbose,
                                      .report_failure_in = report_failure_in,
                                      .mapped_find = mapped_find,
                                      .mapped_library = mapped_library,
                                      .mapped_home = mapped_home,
                                      .path_variable = options_path_variable,
                                      .make_room = caches_make_room,
                                      .device_kept = device_kept,
                                      .device_watch = device_watch,
                                      .current_device = current_device,
                                      .caches_are_on = caches_are_on,
                                      .begin = begin_sparse_work,
                                      .end = end_sparse_work};
    host.cuda = cuda_present();
    if (hip.RuntimeGetVersion(&host.hip_version) != hipSuccess)
        host.hip_version = 0;
    host.hip_path = hip_path();
    host.register_exit = register_exit;
    sparse_entry *const entry =
        (sparse_entry *)mapped_plugin("libmgpu_rt_sparse.so", "mgpu_rt_sparse");
    store_release(&plugin, entry ? entry(&host) : NULL);
}

/* Returns the functions of csrc/sparse; reports their absence. */
static const struct sparse_plugin *plugin_get(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)thread_get();
    (void)pthread_once(&once, open_plugin);
    if (!plugin)
        report_not_made(hipErrorSharedObjectInitFailed, &absent);
    return plugin;
}

#define ONLY_SPARSE
#define MGPU_FN(result, name, params, args, first, last, ...)                                      \
    result impl_##name params {                                                                    \
        const struct sparse_plugin *known = plugin_get();                                          \
        return known ? known->name args : (result)0;                                               \
    }
#define MGPU_VOID(name, params, args, first, last, ...)                                            \
    void impl_##name params {                                                                      \
        const struct sparse_plugin *known = plugin_get();                                          \
        if (known)                                                                                 \
            known->name args;                                                                      \
    }
#include "../../abi.def"

static int trim_environments(int device) {
    const struct sparse_plugin *known = load_acquire(&plugin);
    return known ? known->trim(device) : 0;
}

static void invalidate_environments(int device) {
    const struct sparse_plugin *known = load_acquire(&plugin);
    if (known)
        known->invalidate(device);
}

const struct cache environment_cache = {.trim = trim_environments,
                                        .invalidate = invalidate_environments};
