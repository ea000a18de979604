/* Forwards the functions for sparse matrices to libmgpu_rt_sparse.so, which the first of these
 * calls opens. */
#include "sparse/plugin.h"

static struct advice absent = {
    .text = "libmgpu_rt_sparse.so, which lies beside this library, cannot be opened, so nothing is "
            "computed with sparse matrices: install mgpu_rt again"};

static const struct sparse_plugin *plugin; /* NULL: not opened, or absent */
struct cache environment_cache;

static void open_plugin(void) {
#define NAME(name) .name = &name,
    static const struct sparse_host host = {SPARSE_HOST(NAME)};
#undef NAME
    sparse_entry *const entry =
        (sparse_entry *)mapped_plugin("libmgpu_rt_sparse.so", "mgpu_rt_sparse");
    plugin = entry ? entry(&host) : NULL;
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
