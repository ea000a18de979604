/* Forwards the functions for sparse matrices to libmgpu_rt_sparse.so, which the first of these
 * calls opens. */
#include "sparse/plugin.h"

static struct advice absent = {
    .text = "libmgpu_rt_sparse.so, which lies beside this library, cannot be opened, so nothing is "
            "computed with sparse matrices: install mgpu_rt again"};

static const struct sparse_plugin *plugin; /* NULL: not opened, or absent */
struct cache environment_cache;

#define ADDRESS(name) .name = &name,
static void open_plugin(void) {
    static const struct sparse_host host = {SPARSE_HOST(ADDRESS)};
    plugin = mapped_plugin("libmgpu_rt_sparse.so", "mgpu_rt_sparse", &host);
}

/* Returns true if `plugin` is open; reports its absence. */
static bool plugin_is_open(void) {
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
        return plugin_is_open() ? plugin->name args : (result)0;                                   \
    }
#define MGPU_VOID(name, params, args, first, last, ...)                                            \
    void impl_##name params {                                                                      \
        if (plugin_is_open())                                                                      \
            plugin->name args;                                                                     \
    }
#include "../../abi.def"
